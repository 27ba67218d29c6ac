"""What a namespace of Temporal must have before loops can run in it."""

import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from loopwright.contracts import search_attributes
from loopwright.contracts.failures import UserError

logger = logging.getLogger(__name__)

_TIMEOUT = timedelta(seconds=10)
_COMMAND = "temporal operator search-attribute"
_PREFIX = "INDEXED_VALUE_TYPE_"


async def check_search_attributes(client: Client) -> None:
    """Refuse a namespace that lacks a search attribute: loops would fail midway, setting it.

    Where not everybody may ask for them, nothing is refused.

    Raises:
        UserError: it lacks some; the message has the commands that create them.
    """
    there = await _search_attributes(client)
    if there is not None and (lines := list(_commands(there))):
        where = (
            f"--address {client.service_client.config.target_host} --namespace {client.namespace}"
        )
        text = "\n".join(f"  {_COMMAND} {line} {where}" for line in lines)
        raise UserError(
            f"Temporal's namespace {client.namespace!r} lacks search attributes that loops set; "
            f"prepare it:\n{text}"
        )


async def create_search_attributes(client: Client) -> None:
    """Create what a namespace lacks, as far as that is allowed; several may do so at once."""
    there = await _search_attributes(client)
    lacking = {
        name: IndexedValueType.Value(_PREFIX + kind.upper())
        for name, kind in search_attributes.TYPES.items()
        if there is not None and name not in there
    }
    if not lacking:
        return
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=lacking)
    try:
        await client.operator_service.add_search_attributes(request, timeout=_TIMEOUT)
    except RPCError as error:
        logger.info("search attributes of %s not created: %s", client.namespace, error.message)


async def _search_attributes(client: Client) -> dict[str, str] | None:
    """Read the type of each by its name; None where the server does not tell."""
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        found = await client.operator_service.list_search_attributes(request, timeout=_TIMEOUT)
    except RPCError as error:
        logger.info("search attributes of %s not checked: %s", client.namespace, error.message)
        return None
    kinds = found.custom_attributes.items()
    return {name: IndexedValueType.Name(kind).removeprefix(_PREFIX).title() for name, kind in kinds}


def _commands(there: Mapping[str, str]) -> Iterator[str]:
    """Give what makes a namespace complete: those of another type go, and come anew."""
    for name, kind in search_attributes.TYPES.items():
        if there.get(name, kind) != kind:
            yield f"remove --name {name}"
        if there.get(name) != kind:
            yield f"create --name {name} --type {kind}"
