"""How commands reach the platform."""

from pathlib import Path

import pytest

from loopwright.adapters.s3_store import BRIEF, PATIENT
from loopwright.cli.connection import store_of
from tests.servers import failing_server


def test_command_tries_a_store_that_fails_less_often_than_a_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with failing_server() as (url, asked):
        monkeypatch.setenv("LOOPWRIGHT_TEMPORAL_ADDRESS", "127.0.0.1:1")
        monkeypatch.setenv("LOOPWRIGHT_S3_ENDPOINT", url)
        monkeypatch.setenv("LOOPWRIGHT_S3_ACCESS_KEY", "nobody")
        monkeypatch.setenv("LOOPWRIGHT_S3_SECRET_KEY", "nothing")
        assert store_of(tmp_path) is None
    assert asked == ["/loopwright"] * BRIEF.max_attempts
    assert BRIEF.max_attempts < PATIENT.max_attempts
    assert "the object store cannot be reached" in caplog.text
