"""Decisions: pure functions of plain values, which workflows may call."""
