"""``python -m tests.workers.turning_worker FOLDER``: episodes whose turns end when they are let.

The folder is its store and what it tells: ``attempts`` has a line for each attempt, ``begun-N`` is
there once turn N is under way, ``may-end-N`` lets it end, ``committed-N`` is its record.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from temporalio import activity

from loopwright.activities.episode.resting import Rest
from loopwright.contracts.episodes import TakeTurnsRequest, TakeTurnsResult
from loopwright.contracts.queues import Pool
from loopwright.contracts.turns import StopReason, TurnHead
from loopwright.workers.bootstrap import serve, stop_event
from loopwright.workers.connection import connect
from loopwright.workers.settings import Settings
from tests.fakes import FakeActivities

NUM_TURNS = 3


class Turns:
    """The turns of one episode."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @activity.defn(name="episode.take_turns")
    async def take_turns(self, request: TakeTurnsRequest) -> TakeTurnsResult:
        """Go on from the newest committed turn."""
        self._note_attempt()
        stopping, rest = asyncio.create_task(self._note_stop()), Rest()
        while self._num_committed() < NUM_TURNS:
            if rest.is_due() and self._num_committed() > request.head.num_turns:
                break
            await rest.after(self._turn(self._num_committed()))
        stopping.cancel()
        done = self._num_committed()
        return TakeTurnsResult(
            head=TurnHead(num_turns=done, digest=f"d{done}"),
            stop_reason=StopReason.COMPLETED if done == NUM_TURNS else None,
            num_completion_tokens=done,
            policy_span=None,
        )

    def _note_attempt(self) -> None:
        info = activity.info()
        with (self._folder / "attempts").open("a") as attempts:
            print(json.dumps([info.attempt, list(info.heartbeat_details)]), file=attempts)

    async def _note_stop(self) -> None:
        with suppress(asyncio.CancelledError):
            await activity.wait_for_worker_shutdown()
            (self._folder / "stopping").touch()

    def _num_committed(self) -> int:
        return len(list(self._folder.glob("committed-*")))

    async def _turn(self, number: int) -> None:
        (self._folder / f"begun-{number}").touch()
        while not (self._folder / f"may-end-{number}").exists():
            await asyncio.sleep(0.02)
        (self._folder / f"committed-{number}").touch()


async def main() -> None:
    """Serve until told to stop."""
    stop, settings = stop_event(), Settings.from_environment()
    activities = [Turns(Path(sys.argv[1])).take_turns, FakeActivities().grade_episode]
    await serve(Pool.EPISODE, settings, await connect(settings), activities, stop=stop)


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)
