"""A link to an S3 server that fails now and then, as its seed has it."""

import asyncio
import random
from collections import Counter
from enum import StrEnum

from tests.soak.link import Link, Side

_LONGEST_BODY = 1 << 30
_ERROR = "<Error><Code>{code}</Code><Message>Please try again.</Message></Error>"


class Fault(StrEnum):
    """What happens to a request."""

    SLOW_DOWN = "503 SlowDown"
    INTERNAL_ERROR = "500 InternalError"
    CUT_ANSWER = "answer cut in the middle"
    SLOW_ANSWER = "slow answer"


class FailingStore(Link):
    """Passes requests on one by one, and gives some of them a fault."""

    def __init__(self, *, seed: int, slow_seconds: float = 2.0) -> None:
        """Fail in the order that the seed has.

        Args:
            seed: of what fails, and how.
            slow_seconds: longest time that a slow answer takes.
        """
        super().__init__()
        self.share = 0.0
        """Part of the requests that a fault happens to."""
        self.kinds: tuple[Fault, ...] = tuple(Fault)
        self.num_faults: Counter[Fault] = Counter()
        self._random = random.Random(seed)
        self._slow_seconds = slow_seconds

    async def serve(self, near: Side, far: Side) -> None:
        """Pass one request after another on, and answers as they come."""
        answers = _Answers(near)
        async with asyncio.TaskGroup() as both:
            both.create_task(self.pump(far, answers))
            both.create_task(self._pass_requests(near, far, answers))

    async def _pass_requests(self, near: Side, far: Side, answers: "_Answers") -> None:
        while True:
            head = await near.reader.readuntil(b"\r\n\r\n")
            head, waits = _without_expectation(head)
            if waits:
                await near.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await near.reader.readexactly(_num_bytes(head))
            fault = self._draw()
            if fault is Fault.SLOW_DOWN or fault is Fault.INTERNAL_ERROR:
                await near.write(_refusal(head, fault))
                continue
            if fault is Fault.SLOW_ANSWER:
                await asyncio.sleep(self._random.uniform(0, self._slow_seconds))
            answers.is_cut = fault is Fault.CUT_ANSWER
            await self._flows.wait()
            await far.write(head + body)

    def _draw(self) -> Fault | None:
        if self._random.random() >= self.share:
            return None
        fault = self._random.choice(self.kinds)
        self.num_faults[fault] += 1
        return fault


class _Answers(Side):
    """The way back, which may end in the middle of an answer."""

    def __init__(self, near: Side) -> None:
        super().__init__(near.reader, near.writer)
        self.is_cut = False

    async def write(self, data: bytes) -> None:
        """Write all of it, or half and no more."""
        await super().write(data[: len(data) // 2] if self.is_cut else data)
        if self.is_cut:
            raise ConnectionAbortedError


def _without_expectation(head: bytes) -> tuple[bytes, bool]:
    """Take out that the client waits for a word before it sends the body; tell whether it did."""
    lines = head.split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(b"expect:")]
    return b"\r\n".join(kept), len(kept) < len(lines)


def _num_bytes(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return min(int(value), _LONGEST_BODY)
    return 0


def _refusal(head: bytes, fault: Fault) -> bytes:
    status, _, code = fault.partition(" ")
    body = "" if head.startswith(b"HEAD ") else _ERROR.format(code=code)
    lines = [
        f"HTTP/1.1 {status} {code}",
        "Content-Type: application/xml",
        f"Content-Length: {len(body)}",
        "",
        body,
    ]
    return "\r\n".join(lines).encode()
