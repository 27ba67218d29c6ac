"""What the platform asks of a machine before anything starts."""

import json
import socket
from pathlib import Path

import pytest

from loopwright.adapters.host_checks import HostCheck
from loopwright.contracts.failures import LoopError, UserError
from loopwright.embedded.options import StackOptions
from loopwright.embedded.ports import ChosenPorts, Ports, claimed, is_busy
from loopwright.embedded.preflight import refuse_lacking
from loopwright.embedded.stack import Stack
from loopwright.embedded.state_folder import StateFolder
from tests.servers import free_port


def test_every_lack_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = StackOptions(model=tmp_path / "absent", ports=Ports(s3=70_000))
    with pytest.raises(UserError) as refused:
        Stack(tmp_path / "file" / "state", options=options).ensure_running()
    message = str(refused.value)
    assert "state folder: " in message
    assert f"model: there is no directory '{tmp_path / 'absent'}'" in message
    assert "--s3-port 70000: expected a port from 1 to 65535" in message


def test_refused_start_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        Stack(tmp_path / "state", options=StackOptions(model=tmp_path)).ensure_running()
    assert not list(tmp_path.iterdir())


def test_what_is_optional_is_not_refused() -> None:
    refuse_lacking([HostCheck("toy", is_ok=False, is_required=False, detail="none")], Ports())


def test_busy_port_asked_for_is_refused_with_its_holder(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=rf"--ui-port {port}: the port is taken by process \d+"):
            ChosenPorts.choose(StateFolder(tmp_path), Ports(ui=port))


def test_ports_are_remembered(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    wanted = [free_port() for _ in range(4)]
    asked = Ports(temporal=wanted[0], ui=wanted[1], s3=wanted[2], engine=wanted[3])
    ChosenPorts.choose(folder, asked).remember(folder)
    assert list(ChosenPorts.choose(folder, Ports()).model_dump().values()) == wanted


def test_remembered_port_that_is_busy_now_is_replaced(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        folder.ports.write_text(json.dumps({"s3": port}))
        chosen = ChosenPorts.choose(folder, Ports())
    assert chosen.s3 != port
    assert not is_busy(chosen.s3)
    assert len(set(chosen.model_dump().values())) == 4


def test_the_same_port_for_two_servers_is_refused(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(UserError, match="the same port is given for two servers"):
        ChosenPorts.choose(StateFolder(tmp_path), Ports(s3=port, ui=port))


def test_claimed_port_is_busy_before_anything_listens_on_it(tmp_path: Path) -> None:
    port = free_port()
    with claimed([port]):
        assert is_busy(port)
        folder = StateFolder(tmp_path)
        folder.ports.parent.mkdir(parents=True, exist_ok=True)
        folder.ports.write_text(json.dumps({"engine": port}))
        assert ChosenPorts.choose(folder, Ports()).engine != port
        with pytest.raises(LoopError, match=f"port {port} was taken by another platform"):
            claimed([port]).__enter__()
    assert not is_busy(port)
