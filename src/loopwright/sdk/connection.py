"""How the Temporal server is reached, and what is said when it is not."""

import asyncio
import re
from datetime import timedelta

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode

from loopwright.contracts.failures import UserError
from loopwright.sdk.plugin import plugin

CONNECT_TIMEOUT_SECONDS = 5

_ADDRESS = re.compile(r"(?:[^\s/:\[\]]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})", re.ASCII)
_ADVICE = "start it (`loopwright up`) or set LOOPWRIGHT_TEMPORAL_ADDRESS"
_NO_ANSWER = "no answer"
_REASONS = {
    "connection refused": "connection refused",
    "dns error": "there is no host of this name",
    "timed out": _NO_ANSWER,
    "deadline": _NO_ANSWER,
    "invalid ipv6 address": "no IPv6 address",
    "http2": "what answers there is no Temporal server",
    "grpc-status": "what answers there is no Temporal server",
    "operation was canceled": "what answers there is no Temporal server",
    "unimplemented": "what answers there is no Temporal server",
}
"""What the SDK's core says of a failed connection, in lower case, and what it means."""


async def connect(address: str, namespace: str) -> Client:
    """Connect with the platform's plugin to the server at ``HOST:PORT``.

    Raises:
        UserError: nothing answers there, or it has no such namespace.
    """
    _check(address, namespace)
    try:
        return await asyncio.wait_for(_connect(address, namespace), CONNECT_TIMEOUT_SECONDS)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise UserError(
                f"the Temporal server at {address} has no namespace {namespace!r}; create it "
                f"(`temporal operator namespace create`) or set LOOPWRIGHT_TEMPORAL_NAMESPACE"
            ) from error
        raise _unreachable(address, f"{error.status.name} {error.message}") from error
    except (RuntimeError, TimeoutError, ValueError) as error:
        raise _unreachable(address, str(error)) from error


async def _connect(address: str, namespace: str) -> Client:
    client = await Client.connect(
        address,
        namespace=namespace,
        plugins=[plugin()],
        grpc_compression=GrpcCompression.NONE,
    )
    await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=namespace),
        timeout=timedelta(seconds=CONNECT_TIMEOUT_SECONDS),
    )
    return client


def _check(address: object, namespace: object) -> None:
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None or not 1 <= int(found[1]) <= 65_535:
        raise UserError(
            f"Temporal's address: expected HOST:PORT, the port from 1 to 65535, got {address!r}"
        )
    if not isinstance(namespace, str) or not namespace:
        raise UserError(f"Temporal's namespace: expected a name, got {namespace!r}")


def _unreachable(address: str, said: str) -> UserError:
    lower = said.lower()
    reason = next((told for word, told in _REASONS.items() if word in lower), "")
    if not reason:
        quoted = re.search(r'message: "([^"]+)"', said)
        reason = (quoted[1] if quoted else said).strip() or _NO_ANSWER
    return UserError(f"cannot reach Temporal at {address}: {reason}; {_ADVICE}")
