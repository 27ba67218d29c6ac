"""Commands wait until their memory fits the host beside that of the others."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopwright.adapters.memory_budget import MemoryBudget, host_budget_bytes
from loopwright.contracts.failures import SandboxUnavailable


def test_sum_of_what_is_reserved_never_exceeds_the_budget() -> None:
    budget, lock = MemoryBudget(10), threading.Lock()
    taken, most = 0, 0

    def reserve(num_bytes: int) -> None:
        nonlocal taken, most
        with budget.reserve(num_bytes):
            with lock:
                taken += num_bytes
                most = max(most, taken)
            with lock:
                taken -= num_bytes

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(reserve, [1, 7, 3, 10, 2, 5, 9, 4] * 25))
    assert 0 < most <= 10
    assert taken == 0


def test_large_reservation_is_not_overtaken() -> None:
    budget, order = MemoryBudget(10), []

    def reserve(name: str, num_bytes: int) -> None:
        with budget.reserve(num_bytes):
            order.append(name)

    with ThreadPoolExecutor(2) as threads:
        with budget.reserve(6):
            large = threads.submit(reserve, "large", 10)
            while not budget.num_waiting:
                pass
            small = threads.submit(reserve, "small", 1)
            while budget.num_waiting < 2:
                pass
        large.result()
        small.result()
    assert order == ["large", "small"]


def test_command_that_is_interrupted_while_it_waits_leaves_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budget = MemoryBudget(10)
    with budget.reserve(6):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Event, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt), budget.reserve(10):
                pass
        assert budget.num_waiting == 0
    with budget.reserve(10):
        pass


def interrupted(event: threading.Event, timeout: float | None = None) -> bool:
    raise KeyboardInterrupt


def test_more_than_there_is_is_refused_with_what_there_is() -> None:
    with (
        pytest.raises(SandboxUnavailable, match=r"11 bytes of memory, and this host has 10"),
        MemoryBudget(10).reserve(11),
    ):
        pass


def test_budget_of_a_host_is_less_than_its_memory() -> None:
    assert 0 < host_budget_bytes() < 1 << 50
