"""Losses, the optimiser step and checkpoints; torch lives here and nowhere else."""
