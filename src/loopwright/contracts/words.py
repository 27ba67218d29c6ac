"""Words of a command, which need not be text, in JSON, which is."""

from base64 import b64decode, b64encode
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer, ValidationInfo

_MARK = "\0"
"""Begins a word that is coded; no word that a kernel takes has it."""


def _coded(word: str) -> str:
    """Give text as it is, and anything else as base64 behind the mark."""
    try:
        word.encode()
        if not word.startswith(_MARK):
            return word
    except UnicodeEncodeError:
        pass
    return _MARK + b64encode(word.encode("utf-8", "surrogatepass")).decode()


def _decoded(word: str, info: ValidationInfo) -> str:
    if info.mode != "json" or not word.startswith(_MARK):
        return word
    return b64decode(word[1:]).decode("utf-8", "surrogatepass")


Word = Annotated[str, PlainSerializer(_coded, when_used="json"), AfterValidator(_decoded)]
"""An argument or variable; bytes that are not UTF-8 are surrogate-escaped, and survive JSON."""
