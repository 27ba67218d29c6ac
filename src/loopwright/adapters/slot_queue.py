"""Hands slots to commands, in the order in which these came; one that is warm for them first."""

import threading
from collections import deque
from collections.abc import Iterable

from loopwright.adapters.plans import Plan
from loopwright.adapters.slots import Slot


class SlotQueue:
    """The free slots, and who waits for one."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        """Begin with every slot free."""
        self._slots = list(slots)
        self._free = deque(self._slots)
        self._waiting: deque[_Ticket] = deque()
        self._lock = threading.Lock()

    def take(self, plan: Plan) -> Slot:
        """Wait for a slot, and take the one whose jail is made for ``plan`` where there is one."""
        with self._lock:
            if self._free:
                return self._pick(plan)
            ticket = _Ticket()
            self._waiting.append(ticket)
        try:
            ticket.is_served.wait()
        except BaseException:
            self._leave(ticket)
            raise
        assert ticket.slot is not None
        return ticket.slot

    def give_back(self, slot: Slot) -> None:
        """Hand the slot to whoever waited longest, or keep it."""
        with self._lock:
            if not self._waiting:
                self._free.append(slot)
                return
            ticket = self._waiting.popleft()
            ticket.slot = slot
        ticket.is_served.set()

    def _leave(self, ticket: "_Ticket") -> None:
        """Forget one who was interrupted; what was handed over meanwhile goes on to the next."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                return
        if ticket.slot is not None:
            self.give_back(ticket.slot)

    def close(self) -> None:
        """Wait until every slot is free, and keep them."""
        for _ in self._slots:
            self.take(Plan())

    def _pick(self, plan: Plan) -> Slot:
        """Prefer a jail that fits; else the slot whose jail has waited longest goes."""
        slot = next((slot for slot in self._free if slot.process.plan == plan), self._free[0])
        self._free.remove(slot)
        return slot


class _Ticket:
    """One who waits."""

    def __init__(self) -> None:
        self.is_served = threading.Event()
        self.slot: Slot | None = None
