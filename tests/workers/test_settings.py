"""Settings of a worker from the environment."""

import pytest

from loopwright.contracts.failures import UserError
from loopwright.workers.settings import Settings


def test_each_wrong_variable_is_named_at_once() -> None:
    environment = {
        "LOOPWRIGHT_SANDBOX_SLOTS": "many",
        "LOOPWRIGHT_MAX_EPISODES": "0",
        "LOOPWRIGHT_S3_ENDPOINT": "ftp://host",
    }
    with pytest.raises(UserError) as caught:
        Settings.from_environment(environment)
    assert sorted(str(caught.value).split("; ")) == [
        "LOOPWRIGHT_MAX_EPISODES: expected greater than or equal to 1, got '0'",
        "LOOPWRIGHT_S3_ENDPOINT: expected http://HOST:PORT or https://HOST, got 'ftp://host'",
        "LOOPWRIGHT_SANDBOX_SLOTS: expected a valid integer, got 'many'",
    ]


def test_build_that_the_server_could_not_name_is_refused() -> None:
    with pytest.raises(UserError, match="LOOPWRIGHT_BUILD_ID: expected"):
        Settings.from_environment({"LOOPWRIGHT_BUILD_ID": "main:7c3"})
