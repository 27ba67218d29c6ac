"""Small real child processes in place of the platform's own."""

import sys
from pathlib import Path

from loopwright.embedded.plan import ChildSpec, Connections, Plan, ReadyFile, RestartPolicy

QUICK = RestartPolicy(first_seconds=0.05, max_seconds=0.2)

READY = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid()))\n"
SLEEP = READY + "time.sleep(600)\n"
"""Becomes healthy and stays."""
WITH_CHILD = (
    "import subprocess\n"
    "child = subprocess.Popen(['sleep', '600'])\n"
    "print(child.pid, flush=True)\n" + SLEEP
)
"""Prints the id of a process that it starts."""


def child(state: Path, name: str, code: str = SLEEP, **fields: object) -> ChildSpec:
    """Describe a child that runs ``code``, with the path of its ready file as argument."""
    ready = state.resolve() / "run" / f"{name}.ready"
    return ChildSpec.model_validate(
        {
            "name": name,
            "command": (sys.executable, "-c", code, str(ready)),
            "health": (ReadyFile(path=ready),),
            **fields,
        }
    )


def plan(state: Path, *children: ChildSpec, restart: RestartPolicy = QUICK) -> Plan:
    """Plan children of a platform that nobody connects to."""
    nowhere = "http://127.0.0.1:1"
    connections = Connections(
        state_dir=state.resolve(),
        temporal_address="127.0.0.1:1",
        ui_url=nowhere,
        s3_endpoint=nowhere,
        s3_bucket="loopwright",
        s3_access_key="access",
        s3_secret_key="secret",
        engine_url=nowhere,
        engine_api_key="key",
        model=state,
    )
    return Plan(connections=connections, children=children, restart=restart)
