"""The object store as the log of an episode's turns.

Records form a hash chain: the key of each holds its index, its parent's digest and its own, so
nothing is overwritten and listing the prefix gives the whole tree of turns. A record that is
damaged, or belongs to another request, counts as not there.
"""

import hashlib
import logging
import re
from collections import defaultdict
from dataclasses import dataclass

from pydantic import ValidationError

from loopwright.contracts import ids
from loopwright.contracts.failures import ArtifactDamaged
from loopwright.contracts.turns import TurnHead, TurnRecord
from loopwright.core.protocols import ObjectStore

_logger = logging.getLogger(__name__)
_KEY = re.compile(r"(?P<index>\d{4,})-(?P<parent>root|[0-9a-f]{64})-(?P<digest>[0-9a-f]{64})\.json")
_READ_ATTEMPTS = 3

START = TurnHead(num_turns=0, digest="")
"""The head before the first turn."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Turns in order, and the head they lead to."""

    records: tuple[TurnRecord, ...]
    head: TurnHead


class TurnLog:
    """The turns of one episode."""

    def __init__(self, store: ObjectStore, episode_prefix: str, fingerprint: str | None) -> None:
        """Open the log under an episode's key prefix, for the request of this fingerprint.

        None reads the turns of any request; a chain is of one all the same.
        """
        self._store = store
        self._prefix = episode_prefix
        self._fingerprint = fingerprint

    def commit(self, record: TurnRecord) -> TurnHead:
        """Store a record and give the head it makes; repeating it is harmless.

        Raises:
            StoreError: the store could not take it.
        """
        data = record.model_dump_json().encode()
        digest = hashlib.sha256(data).hexdigest()
        self._store.put(ids.turn_key(self._prefix, record.index, record.parent, digest), data)
        return TurnHead(num_turns=record.index + 1, digest=digest)

    def load(self, head: TurnHead) -> Chain:
        """Read the chain that leads to ``head``.

        Raises:
            ArtifactDamaged: a record of it is missing or damaged.
            StoreError: the store could not give it.
        """
        parents = {key.digest: key for key in self._keys()} if head.digest else {}
        records: list[TurnRecord] = []
        digest = head.digest
        while digest:
            records.append(self._read_whole(digest, parents.get(digest)))
            digest = records[-1].parent
        return Chain(records=tuple(reversed(records)), head=head)

    def deepest(self, head: TurnHead = START) -> Chain:
        """Read the deepest valid chain that descends from ``head``; ties take the least digest.

        Raises:
            ArtifactDamaged: the chain up to ``head`` itself is missing or damaged.
            StoreError: the store could not give it.
        """
        children: dict[str, list[_Key]] = defaultdict(list)
        for key in self._keys():
            children[key.parent].append(key)
        best = self.load(head)
        frontier = [best]
        while frontier:
            grown = [
                Chain(
                    records=(*chain.records, record),
                    head=TurnHead(num_turns=key.index + 1, digest=key.digest),
                )
                for chain in frontier
                for key in children[chain.head.digest]
                if (record := self._read(key)) is not None and _goes_on(chain, record)
            ]
            if grown:
                best = min(grown, key=lambda chain: chain.head.digest)
            frontier = grown
        return best

    def _read_whole(self, digest: str, key: "_Key | None") -> TurnRecord:
        if key is None:
            raise ArtifactDamaged(
                f"turn record {digest} of {self._prefix} is not in the store; "
                f"{ArtifactDamaged.advice}"
            )
        record = self._read(key)
        if record is None:
            raise ArtifactDamaged(
                f"turn record {key.key} is damaged, or another request's; {ArtifactDamaged.advice}"
            )
        return record

    def _keys(self) -> list["_Key"]:
        prefix = ids.turns_prefix(self._prefix)
        parsed = (_parse(key, prefix) for key in self._store.list_keys(prefix))
        return [key for key in parsed if key is not None]

    def _read(self, key: "_Key") -> TurnRecord | None:
        """Read one record; None when it is not what its key says, or another request's."""
        for _ in range(_READ_ATTEMPTS):
            try:
                data = self._store.get(key.key)
            except KeyError:
                return None
            if hashlib.sha256(data).hexdigest() == key.digest:
                return self._validate(key, data)
        _logger.warning("turn record %s is damaged and passed over", key.key)
        return None

    def _validate(self, key: "_Key", data: bytes) -> TurnRecord | None:
        try:
            record = TurnRecord.model_validate_json(data)
        except ValidationError:
            _logger.warning("turn record %s has another schema and is passed over", key.key)
            return None
        is_ours = self._fingerprint in (None, record.fingerprint)
        return (
            record if is_ours and (record.index, record.parent) == (key.index, key.parent) else None
        )


def _goes_on(chain: Chain, record: TurnRecord) -> bool:
    return not chain.records or chain.records[-1].fingerprint == record.fingerprint


@dataclass(frozen=True, slots=True)
class _Key:
    key: str
    index: int
    parent: str
    """Empty for the first turn."""
    digest: str


def _parse(key: str, prefix: str) -> _Key | None:
    match = _KEY.fullmatch(key.removeprefix(prefix))
    if match is None:
        return None
    parent = "" if match["parent"] == "root" else match["parent"]
    return _Key(key, int(match["index"]), parent, match["digest"])
