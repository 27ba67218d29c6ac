"""Whether a child process does its work."""

import socket
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

from loopwright.embedded.plan import HealthCheck, HttpOk, PortOpen, ReadyFile

_ANSWER_SECONDS = 2.0
# A proxy of the user's must not be asked for 127.0.0.1.
_opener = build_opener(ProxyHandler({}))


def is_healthy(check: HealthCheck, pid: int) -> bool:
    """Tell whether a check holds for the process ``pid``."""
    match check:
        case PortOpen(port=port):
            with socket.socket() as probe:
                probe.settimeout(_ANSWER_SECONDS)
                return probe.connect_ex(("127.0.0.1", port)) == 0
        case HttpOk(url=url):
            return _answers(url)
        case ReadyFile(path=path):
            return path.exists() and path.read_text().strip() == str(pid)


def has_given_up(check: HealthCheck) -> bool:
    """Tell whether a server that listened before refuses connections, or says that it is broken."""
    match check:
        case HttpOk(url=url):
            try:
                _opener.open(url, timeout=_ANSWER_SECONDS).close()
            except HTTPError as error:
                return error.code >= 500
            except URLError as error:
                return isinstance(error.reason, ConnectionRefusedError)
            except (HTTPException, OSError):
                return False
    return False


def _answers(url: str) -> bool:
    try:
        with _opener.open(url, timeout=_ANSWER_SECONDS) as response:
            return bool(response.status == 200)
    except (URLError, HTTPException, OSError):
        return False
