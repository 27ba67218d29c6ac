"""Tasks become conversations."""
