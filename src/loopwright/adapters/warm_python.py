"""Waits in a jail as an interpreter already started, and then runs one program as python3 would.

It is given to the interpreter as text. Its socket is descriptor 3: one struct request of init.c
with the three streams, then the arguments and variables. The program finds a fresh ``__main__``,
and its end is the interpreter's own; all that tells it from python3 is two frames below its own.
"""


def run_program() -> None:
    """Take one program and run it; what it raises is left to the interpreter."""
    import sys

    _Base, _Exit = BaseException, SystemExit  # a program can take builtins away

    def hide_own_frames(error: BaseException) -> None:
        """Have the error shown without the two frames that it has passed when it is."""
        shown = sys.__dict__.get("excepthook")
        if shown is None:
            return

        def show(kind: "type[BaseException]", error: "BaseException", trace: object) -> None:
            sys.excepthook = shown
            below = error.__traceback__ and error.__traceback__.tb_next
            stripped = below and below.tb_next
            shown(kind, error.with_traceback(stripped), stripped)

        sys.excepthook = show

    sys.orig_argv = receive_words()
    sys.argv = sys.orig_argv[5:]  # after the interpreter and -s -P -S -B
    if sys.argv[0] == "-c":
        source, path = sys.argv.pop(1).encode("utf-8", "surrogateescape"), "<string>"
        main = clear_main()
    else:
        path = absolute(sys.argv[0])
        source = read_source(path)
        main = clear_main()
        main["__file__"], main["__cached__"] = path, None
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main)
    except _Exit:
        raise
    except _Base as error:
        hide_own_frames(error)
        raise


def receive_words() -> "list[str]":
    """Take the streams, the variables and the arguments, and give the latter."""
    import _socket
    import posix
    import sys

    channel = _socket.socket(fileno=3)
    header, ancillary, _, _ = channel.recvmsg(48, 64)
    while len(header) < 48:
        header += channel.recv(48 - len(header))
    num_bytes, num_arguments = (int.from_bytes(header[at : at + 4], sys.byteorder) for at in (0, 4))
    text = bytearray(num_bytes)
    view, got = memoryview(text), 0
    while got < num_bytes:
        got += channel.recv_into(view[got:])
    channel.close()
    sys.modules.pop("_socket")
    for target in range(3):
        stream = int.from_bytes(ancillary[0][2][4 * target : 4 * target + 4], sys.byteorder)
        posix.dup2(stream, target)
        posix.close(stream)
    words = bytes(text).split(b"\0")[:-1]
    for variable in words[num_arguments:]:
        name, _, value = variable.partition(b"=")
        posix.environ[name] = value
        posix.putenv(name, value)
    return [word.decode("utf-8", "surrogateescape") for word in words[:num_arguments]]


def absolute(path: str) -> str:
    """Give the path as python3 names it in ``__file__``."""
    import posix

    return path if path.startswith("/") else f"{posix.getcwd()}/{path}"


def read_source(path: str) -> bytes:
    """Read the program's file, or end as python3 does without."""
    import sys

    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- nothing more is imported
            return file.read()
    except OSError as error:
        why = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.orig_argv[0]}: can't open file {path!r}: {why}", file=sys.stderr)
        raise SystemExit(2) from None


def clear_main() -> "dict[str, object]":
    """Make ``__main__`` what a program finds, and give its names."""
    import sys

    main = sys.modules["__main__"].__dict__
    for name in [name for name in main if name[:2] != "__"]:
        del main[name]
    main["__doc__"], main["__annotations__"] = None, {}
    return main


run_program()
