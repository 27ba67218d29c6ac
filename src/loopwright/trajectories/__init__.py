"""Token space: rendering, trajectories and their coding."""
