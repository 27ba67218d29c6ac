"""Benchmarks: each measures a ratio within one run and has a target for it."""
