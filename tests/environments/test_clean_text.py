"""Output of any bytes as clean text within a budget."""

import json

import pytest

from loopwright.environments.clean_text import clean, cut, scrub


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        ("größer €\n".encode(), "größer €\n"),
        (b"a\x00b\x07", "a\\x00b\\x07"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\xed\xa0\xbd", "\ufffd\ufffd\ufffd"),
        (b"\xe2\x82", "\ufffd"),
        ("\x85".encode(), "\\x85"),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07end\x1b(B", "red end"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]never ended", "never ended"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b" 10%\r 20%\r100%\nnext", "100%\nnext"),
        (b"50%\r", "50%"),
        (b"b\x08bo\x08old", "bold"),
    ],
)
def test_output_is_rendered_as_it_would_stand_on_paper(data: bytes, text: str) -> None:
    assert clean(data) == text


def test_any_bytes_become_text_that_json_and_utf_8_can_hold() -> None:
    text = clean(bytes(range(256)) * 2 + b"\x1b[" + b"\xf0\x9f")
    assert json.loads(json.dumps(text)).encode().decode() == text
    assert all(character.isprintable() or character in "\t\n" for character in text)


@pytest.mark.parametrize("unit", [b"\r", b"\x1b", b"\x1b]", b"\x08", b"x\r", b"\x1bP", b"\x1b["])
def test_cleaning_is_linear_in_what_hostile_output_repeats(unit: bytes) -> None:
    assert len(clean(unit * 300_000)) <= 4 * len(unit) * 300_000


def test_lone_surrogates_are_replaced() -> None:
    assert scrub("a\ud83db\udc00") == "a\ufffdb\ufffd"


def test_text_within_its_budget_stays() -> None:
    assert cut("x" * 100, 100).text == "x" * 100


def test_long_text_keeps_head_and_tail_and_says_what_is_left_out() -> None:
    shown = cut("A" * 70_000 + "\nTHE-END\n", 1000)
    assert shown.text.startswith("AAA")
    assert shown.text.endswith("A\nTHE-END\n")
    kept = shown.text.replace(f"\n[... {shown.num_left_out_bytes} bytes left out ...]\n", "")
    assert len(kept) + shown.num_left_out_bytes == 70_009
    assert len(shown.text) <= 1000


@pytest.mark.parametrize("max_bytes", range(200, 212))
def test_cut_never_divides_a_character(max_bytes: int) -> None:
    shown = cut("x" + "€" * 1000, max_bytes)
    assert "\ufffd" not in shown.text
    assert len(shown.text.encode()) <= max_bytes
    assert shown.text.count("€") * 3 + shown.num_left_out_bytes + 1 == 3001


def test_what_was_lost_before_is_counted_too() -> None:
    assert cut("abc", 100, num_lost_bytes=7).text == "abc\n[... 7 bytes left out ...]\n"
