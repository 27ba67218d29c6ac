"""Start an open loop from Python, ask it for iterations, watch it and end it.

Run it while the platform is up, with the address that ``loopwright status`` shows:
``python examples/python_client.py 127.0.0.1:7233``
"""

import asyncio
import sys

from loopwright.contracts.configs import EvaluationConfig, IterationConfig, LoopConfig
from loopwright.sdk import LoopClient

CONFIG = LoopConfig(
    iteration=IterationConfig(num_tasks=16, group_size=8),
    evaluation=EvaluationConfig(at_start=False, at_end=False),
    num_iterations=None,
)


async def main(address: str) -> None:
    """Run two iterations, look at them, and end the loop."""
    client = await LoopClient.connect(address)
    loop = await client.start(CONFIG)
    print(f"started {loop.loop_id}")
    await loop.run_iterations(2)
    async for progress in loop.watch():
        print(progress.phase, progress.detail)
        if len(progress.results) == 2:
            break
    await loop.stop()
    result = await loop.result()
    print("first answers passed:", [row.first_pass_rate for row in result.results])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7233"))
