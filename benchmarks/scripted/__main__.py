"""``python -m benchmarks.scripted --port PORT``: serve scripted engines on 127.0.0.1."""

import argparse
import os
from pathlib import Path

from aiohttp import web

from benchmarks.scripted.server import ScriptedServer


def main() -> None:
    """Serve until SIGTERM; the key that callers present is in ``VLLM_API_KEY``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripted", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--engines", nargs="*", default=(), help="more engines, under /NAME each")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds of a completion")
    parser.add_argument("--hold", action="store_true", help="let no completion go yet")
    parser.add_argument("--calls", type=Path, help="file for the names of the turns asked for")
    asked = parser.parse_args()

    def engine() -> web.Application:
        return ScriptedServer(
            api_key=os.environ["VLLM_API_KEY"],
            latency_seconds=asked.latency,
            is_holding=asked.hold,
            calls=asked.calls,
        ).app()

    app = engine()
    for name in asked.engines:
        app.add_subapp(f"/{name}", engine())
    web.run_app(
        app,
        host="127.0.0.1",
        port=asked.port,
        print=None,
        access_log=None,
        # A completion whose caller is gone is dropped, as vLLM does.
        handler_cancellation=True,
        shutdown_timeout=0,
        backlog=4096,
    )


if __name__ == "__main__":
    main()
