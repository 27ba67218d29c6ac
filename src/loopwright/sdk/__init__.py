"""What a user of the platform imports."""

from loopwright.sdk.client import LoopClient
from loopwright.sdk.loop_handle import LoopHandle
from loopwright.sdk.records import LoopDescription, LoopStatus, LoopSummary

__all__ = ["LoopClient", "LoopDescription", "LoopHandle", "LoopStatus", "LoopSummary"]
