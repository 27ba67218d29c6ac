"""What crosses a process boundary: frozen models and names; pydantic and temporalio only."""
