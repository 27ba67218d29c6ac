"""The environment ``program_steps``: a list of steps in words becomes a Python function."""

from loopwright.environments.program_steps.environment import ProgramSteps

__all__ = ["ProgramSteps"]
