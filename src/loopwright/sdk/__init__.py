"""What a user of the platform imports."""

from loopwright.contracts.iterations import LoopStatus
from loopwright.sdk.client import LoopClient
from loopwright.sdk.loop_handle import LoopHandle
from loopwright.sdk.records import LoopDescription, LoopSummary

__all__ = ["LoopClient", "LoopDescription", "LoopHandle", "LoopStatus", "LoopSummary"]
