"""Whatever a program printed, as text that every chat template and every JSON reader can hold.

Left alone on purpose: text that looks like special tokens, which is for rendering to disarm.
"""

import re
from dataclasses import dataclass

REPLACEMENT = "\ufffd"
"""Stands where bytes were not UTF-8."""

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements of the cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # strings for devices
    r"|\x1b[ -/]*[0-~]"
)
_LINE_END = re.compile(r"\r+(?=\n|\Z)")
_OVERWRITTEN = re.compile(r"^[^\n]*\r", re.MULTILINE)
_OVERSTRUCK = re.compile(r"[^\n\x08]\x08")
_SURROGATE = re.compile("[\ud800-\udfff]")
_VISIBLE = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"
}


@dataclass(frozen=True, slots=True)
class CutText:
    """A text within its budget."""

    text: str
    num_left_out_bytes: int = 0


def clean(data: bytes) -> str:
    r"""Render output as a terminal would leave it on paper, and nothing else in it.

    Bytes that are not UTF-8 become U+FFFD; escape sequences go; of a line that was written over
    after a carriage return, the last state stays; other control characters show as ``\x00``.
    """
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE_SEQUENCE.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", _LINE_END.sub("", text))
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text).replace("\x08", "")
    return text.translate(_VISIBLE)


def scrub(text: str) -> str:
    """Put U+FFFD for lone surrogates, which no UTF-8 can hold."""
    return _SURROGATE.sub(REPLACEMENT, text)


def cut(text: str, max_bytes: int, *, num_lost_bytes: int = 0) -> CutText:
    """Keep head and tail of what is longer than ``max_bytes`` of UTF-8, the note between included.

    A byte-level tokenizer never makes more tokens of a text than it has bytes, so that a budget
    of tokens may be given as one of bytes. ``num_lost_bytes`` came after the text and were lost
    before; the note counts them.
    """
    data = text.encode()
    if len(data) <= max_bytes and not num_lost_bytes:
        return CutText(text)
    room = max(0, max_bytes - len(_note(len(data) + num_lost_bytes)))
    if len(data) <= room:
        return CutText(text + _note(num_lost_bytes), num_lost_bytes)
    head = data[: room - room // 2].decode("utf-8", "ignore")
    tail = data[len(data) - room // 2 :].decode("utf-8", "ignore")
    num_left_out = len(data) - len(head.encode()) - len(tail.encode()) + num_lost_bytes
    return CutText(head + _note(num_left_out) + tail, num_left_out)


def _note(num_bytes: int) -> str:
    return f"\n[... {num_bytes} bytes left out ...]\n"
