"""Identities of policies, full and adapter, through everything that stores or carries them."""

import pytest
from pydantic import ValidationError
from temporalio.contrib.pydantic import pydantic_data_converter

from loopwright.adapters.checkpoint_files import (
    CheckpointManifest,
    find_checkpoint,
    keep_manifest,
    read_manifest,
)
from loopwright.adapters.object_store import InMemoryObjectStore
from loopwright.contracts.base import refusals
from loopwright.contracts.policies import CheckpointRef, PolicyVersion

FULL = PolicyVersion(policy_id="digits-3f2a", version=4)
ADAPTER = PolicyVersion(policy_id="digits-3f2a", version=4, kind="adapter", base="digits-3f2a@3")


def keep(store: InMemoryObjectStore, policy: PolicyVersion) -> CheckpointRef:
    """Store a checkpoint without files."""
    manifest = CheckpointManifest(policy=policy, model_fingerprint="f", model=(), request="r")
    return keep_manifest(store, manifest, prefix="p")


@pytest.mark.parametrize("policy", [FULL, ADAPTER])
def test_policy_version_is_the_same_after_it_was_written_and_read(policy: PolicyVersion) -> None:
    assert PolicyVersion.model_validate_json(policy.model_dump_json()) == policy


def test_adapter_is_written_with_its_kind_and_base() -> None:
    assert ADAPTER.model_dump(mode="json") == {
        "policy_id": "digits-3f2a",
        "version": 4,
        "kind": "adapter",
        "base": "digits-3f2a@3",
    }


def test_record_that_names_no_kind_is_of_full_weights() -> None:
    read = PolicyVersion.model_validate_json('{"policy_id": "digits-3f2a", "version": 4}')
    assert read == FULL
    assert (read.kind, read.base) == ("full", None)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('{"policy_id": "p", "version": 4, "kind": "adapter"}', "the adapter is over"),
        ('{"policy_id": "p", "version": 4, "kind": "adapter", "base": ""}', "the adapter is over"),
        ('{"policy_id": "p", "version": 4, "base": "p@3"}', "none for full weights, got 'p@3'"),
    ],
)
def test_adapter_has_a_base_and_full_weights_have_none(record: str, expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PolicyVersion.model_validate_json(record)
    (said,) = refusals(caught.value)
    assert said.startswith("base: expected")
    assert said.endswith(expected)


async def test_adapter_travels_through_workflows_with_its_base() -> None:
    checkpoint = keep(InMemoryObjectStore(), ADAPTER)
    payloads = await pydantic_data_converter.encode([checkpoint])
    assert await pydantic_data_converter.decode(payloads, [CheckpointRef]) == [checkpoint]


def test_adapter_comes_back_from_its_manifest() -> None:
    store = InMemoryObjectStore()
    checkpoint = keep(store, ADAPTER)
    assert checkpoint.policy == ADAPTER
    assert read_manifest(store, checkpoint.manifest).policy == ADAPTER


def test_adapter_and_full_weights_of_one_version_are_not_taken_for_each_other() -> None:
    store = InMemoryObjectStore()
    full = keep(store, FULL)
    assert find_checkpoint(store, ADAPTER, request="r", prefix="p") is None
    adapter = keep(store, ADAPTER)
    assert find_checkpoint(store, ADAPTER, request="r", prefix="p") == adapter
    assert find_checkpoint(store, FULL, request="r", prefix="p") == full
