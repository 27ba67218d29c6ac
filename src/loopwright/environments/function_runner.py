"""Runs inside the jail: calls a function of ``answer.py`` and reports what each call gave.

Its standard output becomes a private descriptor before the answer is loaded.
"""

import json
import os
import sys


def _encode(value: object) -> object:
    """Code a value of exactly a JSON type; anything else, a subclass too, is refused."""
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return value
    if kind is int:
        return {"int": format(value, "x")}
    if kind in (list, tuple):
        return [_encode(item) for item in value]  # type: ignore[attr-defined]
    if kind is dict and all(type(key) is str for key in value):  # type: ignore[attr-defined]
        items = value.items()  # type: ignore[attr-defined]
        return {"dict": {key: _encode(item) for key, item in items}}
    raise TypeError(f"returned {kind.__name__}")


def main() -> None:
    """Make the calls of the request on standard input."""
    request = json.loads(sys.stdin.buffer.read())
    channel = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    write, dumps, encode = os.write, json.dumps, _encode
    prefix = request["nonce"] + " "
    calls, entry = request["calls"], request["entry"]

    def report(result: dict[str, object]) -> None:
        write(channel, (prefix + dumps(result) + "\n").encode("ascii"))

    try:
        with open("answer.py", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to load
            code = compile(file.read(), "answer.py", "exec")
        module = type(sys)("answer")
        sys.modules["answer"] = module
        exec(code, module.__dict__)
        function = module.__dict__[entry]
    except BaseException as error:
        problem = f"{type(error).__name__}"
        for i in range(len(calls)):
            report({"case": i, "error": problem})
        os._exit(1)
    for i, arguments in enumerate(calls):
        try:
            report({"case": i, "value": encode(function(*arguments))})
        except BaseException as error:
            report({"case": i, "error": type(error).__name__})
    os._exit(0)


main()
