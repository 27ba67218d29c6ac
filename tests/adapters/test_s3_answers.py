"""Answers of an S3 service that end too soon, or tell a failure under a status of success."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from loopwright.adapters.s3_store import BRIEF, S3ObjectStore
from loopwright.contracts.failures import StoreError

LISTING = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
KEPT = b"<DeleteResult><Error><Key>a</Key><Message>it is locked</Message></Error></DeleteResult>"
ASKED: dict[str, Callable[[S3ObjectStore], object]] = {
    "get": lambda store: store.get("a"),
    "list": lambda store: store.list_keys(""),
    "folders": lambda store: store.list_folders(""),
    "delete": lambda store: store.delete(["a"]),
}


@dataclass
class Service:
    """Sends the same bytes to each request, and closes the connection."""

    answer: bytes = b""
    requests: list[bytes] = field(default_factory=list)
    url: str = ""

    def store(self) -> S3ObjectStore:
        return S3ObjectStore(
            "tests", endpoint=self.url, access_key="a", secret_key="s", patience=BRIEF
        )


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            found.requests.append(self.request.recv(65536))
            self.request.sendall(found.answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


def whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nDa", b"HTTP/1.1 200 OK\r\n"])
def test_answer_cut_in_its_headers_is_never_taken_for_an_empty_one(
    service: Service, asked: str, answer: bytes
) -> None:
    service.answer = answer
    with pytest.raises(StoreError):
        ASKED[asked](service.store())
    assert len(service.requests) >= BRIEF.max_attempts


@pytest.mark.parametrize("asked", ["get", "list", "folders"])
def test_answer_cut_in_its_body_is_asked_for_again(service: Service, asked: str) -> None:
    service.answer = whole(LISTING)[:-10]
    with pytest.raises(StoreError):
        ASKED[asked](service.store())
    assert len(service.requests) >= BRIEF.max_attempts


def test_object_that_is_not_deleted_is_named(service: Service) -> None:
    service.answer = whole(KEPT)
    with pytest.raises(StoreError, match=r"key=a.*it is locked"):
        service.store().delete(["a", "b"])


def test_empty_listing_is_empty(service: Service) -> None:
    service.answer = whole(LISTING)
    assert service.store().list_keys("") == []
