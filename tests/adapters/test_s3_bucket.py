"""Making sure of the bucket, against a service that answers as it is told."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from loopwright.adapters.s3_store import S3ObjectStore
from loopwright.contracts.failures import StoreError
from tests.servers import free_port, open_store, s3_server


@dataclass
class Service:
    """An S3 service with one bucket's answers, the next one first."""

    port: int = 0
    heads: list[int] = field(default_factory=list)
    """Status of each HEAD."""
    refusal: str = ""
    """Error code of the creation; empty where it succeeds."""
    bodies: list[str] = field(default_factory=list)
    """What creations sent."""

    def store(self, region: str = "us-east-1") -> S3ObjectStore:
        return S3ObjectStore(
            "bucket",
            endpoint=f"http://127.0.0.1:{self.port}",
            access_key="key",
            secret_key="secret",
            region=region,
        )


def handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(service.heads.pop(0))

        def do_PUT(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            service.bodies.append(self.rfile.read(length).decode())
            error = f"<Error><Code>{service.refusal}</Code></Error>" if service.refusal else ""
            self._answer(409 if error else 200, error.encode())

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(service))
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield service
    server.shutdown()
    server.server_close()
    thread.join()


def test_bucket_that_is_there_is_not_created(service: Service) -> None:
    service.heads = [200]
    service.store().ensure_bucket()
    assert service.bodies == []


@pytest.mark.parametrize("code", ["BucketAlreadyOwnedByYou", "BucketAlreadyExists"])
def test_bucket_that_somebody_else_of_us_made_first_is_taken(service: Service, code: str) -> None:
    service.heads, service.refusal = [404, 200], code
    service.store().ensure_bucket()
    assert service.heads == []


def test_bucket_of_another_owner_is_refused(service: Service) -> None:
    service.heads, service.refusal = [404, 403], "BucketAlreadyExists"
    with pytest.raises(StoreError, match=r"bucket=bucket.*403"):
        service.store().ensure_bucket()


def test_refused_creation_is_a_store_error(service: Service) -> None:
    service.heads, service.refusal = [404], "InvalidBucketName"
    with pytest.raises(StoreError, match="InvalidBucketName"):
        service.store().ensure_bucket()


@pytest.mark.parametrize("region", ["us-east-1", "auto"])
def test_default_region_of_a_service_is_not_named(service: Service, region: str) -> None:
    service.heads = [404]
    service.store(region).ensure_bucket()
    assert service.bodies == [""]


def test_bucket_is_created_in_the_region_of_the_store(service: Service) -> None:
    service.heads = [404]
    service.store("eu-central-1").ensure_bucket()
    assert "<LocationConstraint>eu-central-1</LocationConstraint>" in service.bodies[0]


@pytest.mark.s3
def test_many_processes_may_create_the_bucket_at_once(tmp_path: Path) -> None:
    port = free_port()
    with s3_server(tmp_path, port), ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(lambda _: open_store(port, "fresh"), range(8)))
        stores[0].put("key", b"content")
        assert [store.get("key") for store in stores] == [b"content"] * 8
