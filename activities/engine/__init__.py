"""Activities run by the engine pool."""
