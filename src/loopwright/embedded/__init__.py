"""The whole platform on one machine, as supervised child processes."""
