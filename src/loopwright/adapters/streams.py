"""What comes out of one pipe of a command, cut at what is kept."""

from dataclasses import dataclass, field

_MAX_CHARACTER_BYTES = 4


@dataclass(slots=True)
class Stream:
    """One pipe's bytes, up to what is kept, and the count of all."""

    max_kept_bytes: int
    max_bytes: int
    data: bytearray = field(default_factory=bytearray, init=False)
    num_bytes: int = field(default=0, init=False)

    def feed(self, chunk: bytes) -> None:
        """Take what was read."""
        self.num_bytes += len(chunk)
        self.data += chunk[: self.max_kept_bytes - len(self.data)]

    @property
    def kept(self) -> bytes:
        """What is kept; where it was cut, it ends with a whole character of UTF-8."""
        return whole_characters(bytes(self.data)) if self.is_truncated else bytes(self.data)

    @property
    def is_truncated(self) -> bool:
        """Whether bytes were dropped."""
        return self.num_bytes > len(self.data)

    @property
    def is_over(self) -> bool:
        """Whether more came than may come."""
        return self.num_bytes > self.max_bytes


def whole_characters(data: bytes) -> bytes:
    """Drop a character that the end of ``data`` cuts in two; all other bytes stay as they are.

    Example:
        ``whole_characters("aé".encode()[:2]) == b"a"``
    """
    for length in range(1, min(_MAX_CHARACTER_BYTES, len(data)) + 1):
        lead = data[-length]
        if lead & 0xC0 == 0x80:
            continue
        return data[:-length] if length < _character_bytes(lead) else data
    return data


def _character_bytes(lead: int) -> int:
    """Say how many bytes a character has that begins so; 1 for what begins none."""
    for num_bytes, first, last in ((2, 0xC2, 0xDF), (3, 0xE0, 0xEF), (4, 0xF0, 0xF4)):
        if first <= lead <= last:
            return num_bytes
    return 1
