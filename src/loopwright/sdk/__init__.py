"""What a user of the platform imports."""

from loopwright.contracts.iterations import LoopStatus
from loopwright.sdk.client import LoopClient
from loopwright.sdk.loop_handle import LoopHandle
from loopwright.sdk.records import LoopDescription, LoopSummary
from loopwright.sdk.schedule_handle import ScheduleHandle
from loopwright.sdk.schedule_records import Firing, ScheduleDescription
from loopwright.sdk.schedules import Schedules

__all__ = [
    "Firing",
    "LoopClient",
    "LoopDescription",
    "LoopHandle",
    "LoopStatus",
    "LoopSummary",
    "ScheduleDescription",
    "ScheduleHandle",
    "Schedules",
]
