"""What a user of the platform imports."""
