"""Real servers for tests: each on a free port of 127.0.0.1, ended with its test."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from loopwright.adapters.s3_store import S3ObjectStore
from tests.binaries import binary

ACCESS_KEY, SECRET_KEY = "testaccess", "testsecret"


def free_port() -> int:
    """Find a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Wait until the process listens."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


@contextmanager
def s3_server(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Serve a folder as S3."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    command = [binary("rclone"), "serve", "s3", str(folder / "data")]
    command += ["--addr", f"127.0.0.1:{port}", "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}"]
    command += ["--vfs-cache-mode", "writes", "--vfs-write-back", "0s"]
    command += [
        "--cache-dir",
        str(folder / "cache"),
        "--config",
        os.devnull,
        "--log-level",
        "ERROR",
    ]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        wait_for_port(port, process)
        yield process
    finally:
        end(process)


@contextmanager
def failing_server() -> Iterator[tuple[str, list[str]]]:
    """Answer every request with 503; give the server's URL and the paths asked for so far."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_error(503)

        do_GET = do_PUT = do_HEAD

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def open_store(port: int, bucket: str = "tests") -> S3ObjectStore:
    """Open a bucket of a test server."""
    store = S3ObjectStore(
        bucket,
        endpoint=f"http://127.0.0.1:{port}",
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
    )
    store.ensure_bucket()
    return store
