"""Ports of 127.0.0.1 for the servers: chosen once for a state folder, then kept."""

import random
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

import psutil
from pydantic import Field

from loopwright.adapters.host_locks import HostLocks
from loopwright.contracts.base import Contract
from loopwright.contracts.failures import LoopError, UserError
from loopwright.embedded.state_folder import StateFolder, write_private

# Below the range that Linux takes for outgoing connections.
_FALLBACKS = range(20_000, 32_000)


class Ports(Contract):
    """A port for each server; None where it is to be chosen."""

    temporal: int | None = None
    ui: int | None = None
    s3: int | None = None
    engine: int | None = None


class ChosenPorts(Contract):
    """A port for each server."""

    temporal: int = Field(default=7233, ge=1, le=65_535)
    ui: int = Field(default=8233, ge=1, le=65_535)
    s3: int = Field(default=9233, ge=1, le=65_535)
    engine: int = Field(default=8000, ge=1, le=65_535)

    @classmethod
    def choose(cls, folder: StateFolder, asked: Ports) -> Self:
        """Take the ports asked for, else those of last time, else usual or free ones.

        Raises:
            UserError: a port asked for is taken or is no port.
        """
        if problems := port_problems(asked):
            raise UserError("; ".join(problems))
        given = asked.model_dump(exclude_none=True)
        taken = set(given.values())
        chosen = dict(given)
        for name, port in _remembered(cls, folder).model_dump().items():
            if name not in given:
                chosen[name] = port if port not in taken and not is_busy(port) else _free(taken)
                taken.add(chosen[name])
        return cls.model_validate(chosen)

    def remember(self, folder: StateFolder) -> None:
        """Keep them for the next start."""
        write_private(folder.ports, self.model_dump_json() + "\n")


def port_problems(asked: Ports) -> list[str]:
    """Say which of the ports asked for cannot be had, and why."""
    given = asked.model_dump(exclude_none=True)
    return [problem for name, port in given.items() if (problem := _problem(name, port, given))]


@contextmanager
def claimed(ports: Iterable[int]) -> Iterator[None]:
    """Claim ports for the servers of one platform, which may take a minute until they listen.

    Raises:
        LoopError: another platform has claimed one.
    """
    claims = HostLocks()
    try:
        for port in ports:
            if not claims.take(_claim(port)):
                raise LoopError(
                    f"port {port} was taken by another platform that started at the same time; "
                    "start again"
                )
        yield
    finally:
        claims.close()


def is_busy(port: int) -> bool:
    """Tell whether a port of 127.0.0.1 is claimed or cannot be listened on."""
    claims = HostLocks()
    if not claims.take(_claim(port)):
        return True
    claims.close()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _claim(port: int) -> str:
    return f"port/{port}"


def _problem(name: str, port: int, given: dict[str, int]) -> str:
    option = f"--{name}-port {port}"
    if not 1 <= port <= 65_535:
        return f"{option}: expected a port from 1 to 65535"
    if list(given.values()).count(port) > 1:
        return f"{option}: the same port is given for two servers"
    if is_busy(port):
        return f"{option}: the port is taken by {_holder(port)}; end that or choose another port"
    return ""


def _holder(port: int) -> str:
    """Name the process that listens on a port, as far as this user may know."""
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.pid:
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        pass
    return "a process of another user or system service"


def _remembered(kind: type["ChosenPorts"], folder: StateFolder) -> "ChosenPorts":
    try:
        return kind.model_validate_json(folder.ports.read_bytes())
    except FileNotFoundError:
        return kind()
    except ValueError as error:
        raise UserError(f"{folder.ports} is damaged; remove it") from error


def _free(taken: set[int]) -> int:
    """Find a port nobody listens on."""
    candidates = [port for port in _FALLBACKS if port not in taken]
    random.shuffle(candidates)
    return next(port for port in candidates if not is_busy(port))
