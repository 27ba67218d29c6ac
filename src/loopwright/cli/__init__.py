"""The ``loopwright`` console script: one file a command."""
