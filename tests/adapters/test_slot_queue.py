"""Slots go to callers in the order they came, and none is lost to one who left."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loopwright.adapters import slot_queue
from loopwright.adapters.plans import Plan
from loopwright.adapters.slot_queue import SlotQueue
from loopwright.adapters.slots import Slot


class Interrupted(threading.Event):
    """A wait that ends as Ctrl-C ends it."""

    def wait(self, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


def slot_for(plan: Plan | None) -> Slot:
    return cast(Slot, SimpleNamespace(process=SimpleNamespace(plan=plan)))


def test_slot_whose_jail_fits_is_taken_first() -> None:
    other, fitting = slot_for(None), slot_for(Plan(root="r"))
    queue = SlotQueue([other, fitting])
    assert queue.take(Plan(root="r")) is fitting
    assert queue.take(Plan(root="r")) is other


def test_caller_who_is_interrupted_takes_no_slot_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    slot = slot_for(None)
    queue = SlotQueue([slot])
    assert queue.take(Plan()) is slot
    events: dict[str, Any] = {"Event": Interrupted, "Lock": threading.Lock}
    monkeypatch.setattr(slot_queue, "threading", SimpleNamespace(**events))
    with pytest.raises(KeyboardInterrupt):
        queue.take(Plan())
    queue.give_back(slot)
    assert queue.take(Plan()) is slot
