"""Waits in a jail as an interpreter already started, and then runs one program as python3 would.

It is given to the interpreter as text. Its socket is descriptor 3: one struct request of init.c
with the three streams, then the arguments and variables. The program finds a fresh ``__main__``,
and its end is the interpreter's own; all that tells it from python3 is two frames below its own.
"""


def run_program() -> None:
    """Take one program and run it; what it raises is left to the interpreter."""
    import _socket
    import posix
    import sys

    _FLAGS = 5  # the interpreter and -s -P -S -B
    _Base, _Exit = BaseException, SystemExit  # a program can take builtins away

    def receive() -> "list[str]":
        channel = _socket.socket(fileno=3)
        header, ancillary, _, _ = channel.recvmsg(48, 64)
        while len(header) < 48:
            header += channel.recv(48 - len(header))
        sizes = [int.from_bytes(header[at : at + 4], sys.byteorder) for at in (0, 4)]
        text = bytearray(sizes[0])
        view, got = memoryview(text), 0
        while got < len(text):
            got += channel.recv_into(view[got:])
        channel.close()
        for target in range(3):
            stream = int.from_bytes(ancillary[0][2][4 * target : 4 * target + 4], sys.byteorder)
            posix.dup2(stream, target)
            posix.close(stream)
        words = bytes(text).split(b"\0")[:-1]
        for variable in words[sizes[1] :]:
            name, _, value = variable.partition(b"=")
            posix.environ[name] = value
            posix.putenv(name, value)
        return [word.decode("utf-8", "surrogateescape") for word in words[: sizes[1]]]

    def absolute(path: str) -> str:
        return path if path.startswith("/") else f"{posix.getcwd()}/{path}"

    def read(path: str) -> bytes:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 -- nothing more is imported
                return file.read()
        except OSError as error:
            why = f"[Errno {error.errno}] {error.strerror}"
            print(f"{arguments[0]}: can't open file {path!r}: {why}", file=sys.stderr)
            raise _Exit(2) from None

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

    main = sys.modules["__main__"].__dict__
    for name in ("run_program", "__annotations__"):
        main.pop(name, None)
    main["__doc__"] = None
    main["__annotations__"] = {}
    arguments = receive()
    sys.modules.pop("_socket")
    sys.orig_argv = arguments
    sys.argv = arguments[_FLAGS:]
    if sys.argv[0] == "-c":
        source, path = arguments[_FLAGS + 1].encode("utf-8", "surrogateescape"), "<string>"
        sys.argv = ["-c", *arguments[_FLAGS + 2 :]]
    else:
        path = absolute(sys.argv[0])
        source = read(path)
        main["__file__"], main["__cached__"] = path, None
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main)
    except _Exit:
        raise
    except _Base as error:
        hide_own_frames(error)
        raise


run_program()
