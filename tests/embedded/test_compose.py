"""The compose file names settings that workers have."""

from pathlib import Path

import yaml

import loopwright
from loopwright.adapters.vllm_server import server_command
from loopwright.contracts.queues import Pool
from loopwright.workers.settings import Settings

COMPOSE = yaml.safe_load((Path(loopwright.__file__).parent / "deploy/compose.yaml").read_text())


def test_every_pool_has_a_worker() -> None:
    commands = [COMPOSE["services"][f"{pool}-worker"]["command"] for pool in Pool]
    assert commands == [["loopwright", "worker", str(pool)] for pool in Pool]


def test_workers_are_given_settings_that_exist() -> None:
    for pool in Pool:
        given = COMPOSE["services"][f"{pool}-worker"]["environment"]
        names = {name.removeprefix("LOOPWRIGHT_").lower() for name in given}
        assert names <= Settings.model_fields.keys()


def test_engine_is_given_the_options_of_a_server_for_gpus() -> None:
    command = server_command(Path("/model"), port=8000, max_model_len=2048, has_gpu=True)
    options = {word for word in command if word.startswith("--")}
    given = COMPOSE["services"]["engine"]["command"].split()
    assert options == {word for word in given if word.startswith("--")}


def test_ports_are_open_to_this_machine_only() -> None:
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
