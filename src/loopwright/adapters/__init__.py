"""The outside world, each part behind a small protocol with a fake beside it."""
