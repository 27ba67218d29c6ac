"""The object store on S3 and everything that speaks its protocol.

Relies on no conditional write: keys are content-addressed or owned by one writer. Whoever reads
an artifact checks its digest (``artifacts.fetch``), so what the store mangled is never used.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from loopwright.contracts.failures import StoreError
from loopwright.core.protocols import ObjectStore

if TYPE_CHECKING:
    from botocore.paginate import PageIterator
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.literals import BucketLocationConstraintType
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

_MISSING = {"404", "NoSuchKey", "NotFound"}
_TAKEN = {"BucketAlreadyOwnedByYou", "BucketAlreadyExists", "OperationAborted"}
_WITHOUT_LOCATION = {"us-east-1", "auto"}
"""Regions that a service takes for its default, and refuses by name."""
_DELETE_PAGE = 1000
_BROKEN_ANSWERS = (IncompleteReadError, ReadTimeoutError, ResponseStreamingError)
"""What the library tells, and does not try again, of an answer that ends in the middle."""
_SAY_THE_END = {"content-length", "transfer-encoding"}
"""Headers by which the end of an answer is known."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a store that fails or does not answer is tried."""

    max_attempts: int
    """Of each request, the first included, with growing pauses between them."""
    connect_seconds: float
    read_seconds: float
    """Between two pieces of an answer."""


PATIENT = Patience(max_attempts=7, connect_seconds=5, read_seconds=30)
"""For a worker, whose activity would have to begin anew."""
BRIEF = Patience(max_attempts=3, connect_seconds=2, read_seconds=10)
"""For a command, whose user waits and can give it again."""


class S3ObjectStore(ObjectStore):
    """One bucket of one S3 service; one client a process, safe for many threads."""

    def __init__(
        self,
        bucket: str,
        *,
        endpoint: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        region: str = "us-east-1",
        max_connections: int = 64,
        patience: Patience = PATIENT,
    ) -> None:
        """Prepare the client; nothing is sent yet."""
        self._bucket = bucket
        self._max_attempts = patience.max_attempts
        self._client: S3Client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            region_name=region,
            config=Config(
                s3={"addressing_style": "path"} if endpoint else {},
                retries={"mode": "standard", "total_max_attempts": patience.max_attempts},
                max_pool_connections=max_connections,
                connect_timeout=patience.connect_seconds,
                read_timeout=patience.read_seconds,
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    def ensure_bucket(self) -> None:
        """Create the bucket unless it is there; many processes may do so at once.

        Raises:
            StoreError: the service cannot be reached or refuses, or the bucket is another's.
        """
        with self._naming("bucket", self._bucket):
            try:
                self._client.head_bucket(Bucket=self._bucket)
            except ClientError as error:
                if _code(error) not in _MISSING:
                    raise
                self._create_bucket()

    def put(self, key: str, data: bytes) -> None:
        """Store ``data``."""
        with self._naming("put", key):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=data)

    def get(self, key: str) -> bytes:
        """Fetch an object whole."""
        with self._naming("get", key):
            return self._whole(lambda: self._read(key))

    def list_keys(self, prefix: str) -> list[str]:
        """List every key that starts with ``prefix``, over all pages."""
        with self._naming("list", prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=prefix
            )
            objects = (item for page in self._read_all(pages) for item in page.get("Contents", ()))
            return sorted(item.get("Key", "") for item in objects)

    def list_folders(self, prefix: str) -> list[str]:
        """List what stands between ``prefix`` and the next ``/`` of keys."""
        with self._naming("list", prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=prefix, Delimiter="/"
            )
            found = (
                item for page in self._read_all(pages) for item in page.get("CommonPrefixes", ())
            )
            return sorted(item.get("Prefix", "").removeprefix(prefix).rstrip("/") for item in found)

    def exists(self, key: str) -> bool:
        """Tell whether an object of this key is there."""
        with self._naming("head", key):
            try:
                self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if _code(error) in _MISSING:
                    return False
                raise
        return True

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects, a page at a time."""
        todo = list(keys)
        for start in range(0, len(todo), _DELETE_PAGE):
            page = todo[start : start + _DELETE_PAGE]
            with self._naming("delete", page[0]):
                self._whole(partial(self._delete, page))

    def _read(self, key: str) -> bytes:
        answer = self._client.get_object(Bucket=self._bucket, Key=key)
        _refuse_cut(answer)
        return answer["Body"].read()

    def _read_all(
        self, pages: "PageIterator[ListObjectsV2OutputTypeDef]"
    ) -> list["ListObjectsV2OutputTypeDef"]:
        def read() -> list["ListObjectsV2OutputTypeDef"]:
            found = list(pages)
            for page in found:
                _refuse_cut(page)
            return found

        return self._whole(read)

    def _delete(self, keys: list[str]) -> None:
        answer = self._client.delete_objects(
            Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in keys]}
        )
        _refuse_cut(answer)
        for error in answer.get("Errors", ())[:1]:
            raise self._error("delete", error.get("Key", ""), error.get("Message", error))

    def _whole(self, ask: Callable[[], Answer]) -> Answer:
        """Ask again where the answer ends in the middle."""
        for _ in range(self._max_attempts - 1):
            with suppress(*_BROKEN_ANSWERS):
                return ask()
        return ask()

    def _create_bucket(self) -> None:
        region = self._client.meta.region_name
        try:
            if region in _WITHOUT_LOCATION:
                self._client.create_bucket(Bucket=self._bucket)
            else:
                self._client.create_bucket(
                    Bucket=self._bucket,
                    CreateBucketConfiguration={
                        "LocationConstraint": cast("BucketLocationConstraintType", region)
                    },
                )
        except ClientError as error:
            if _code(error) not in _TAKEN:
                raise
            # Somebody was faster: good when it was one of us, and refused here when it was not.
            self._client.head_bucket(Bucket=self._bucket)

    @contextmanager
    def _naming(self, operation: str, key: str) -> Iterator[None]:
        """Turn the library's errors into ours, with bucket and key named."""
        try:
            yield
        except ClientError as error:
            if operation == "get" and _code(error) in _MISSING:
                raise KeyError(key) from error
            raise self._error(operation, key, error) from error
        except (BotoCoreError, OSError) as error:
            raise self._error(operation, key, error) from error

    def _error(self, operation: str, key: str, error: object) -> StoreError:
        return StoreError(f"S3 {operation} failed [bucket={self._bucket}, key={key}]: {error}")


def _refuse_cut(answer: Mapping[str, Any]) -> None:
    """Refuse an answer cut within its headers: the library takes it for an empty one."""
    if not _SAY_THE_END & answer["ResponseMetadata"]["HTTPHeaders"].keys():
        raise IncompleteReadError(actual_bytes=0, expected_bytes=1)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
