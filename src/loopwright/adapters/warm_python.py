"""Waits in a jail as an interpreter already started, and then runs one program as python3 would.

It is given to the interpreter as text. Its socket is descriptor 3: one struct request of init.c
with the three streams, then the arguments and variables. The program finds a fresh ``__main__``,
and its end is Python's: threads, exit functions, flushed files, the exit code. Only the teardown of
modules is left out.
"""


def run_program() -> None:
    """Take one program, run it, and end the process."""
    import _socket
    import posix
    import sys

    _FLAGS = 5  # the interpreter and -s -P -S -B

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

    def read(path: str) -> bytes:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 -- nothing more is imported
                return file.read()
        except OSError as error:
            full = path if path.startswith("/") else f"{posix.getcwd()}/{path}"
            why = f"[Errno {error.errno}] {error.strerror}"
            print(f"{arguments[0]}: can't open file {full!r}: {why}", file=sys.stderr)
            sys.stderr.flush()
            posix._exit(2)

    def flush() -> bool:
        """Write what files that are still open hold, standard output last."""
        import gc
        import io

        kinds = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
        for thing in gc.get_objects():
            if type(thing) in kinds and thing not in (sys.stdout, sys.stderr):
                try:
                    thing.flush()
                except (OSError, ValueError):
                    continue
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            return sys.stdout is None or sys.stdout.closed
        return True

    def exit_code(error: "BaseException | None") -> int:
        """Say the exit code, and print what Python would print."""
        if error is None:
            return 0
        if not isinstance(error, SystemExit):
            trace = error.__traceback__.tb_next if error.__traceback__ else None
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            return 130 if isinstance(error, KeyboardInterrupt) else 1
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1

    main = sys.modules["__main__"].__dict__
    for name in ("run_program", "__annotations__"):
        main.pop(name, None)
    main["__doc__"] = None
    main["__annotations__"] = {}
    arguments = receive()
    sys.orig_argv = arguments
    sys.argv = arguments[_FLAGS:]
    failure: BaseException | None = None
    try:
        if sys.argv[0] == "-c":
            source, path = arguments[_FLAGS + 1].encode("utf-8", "surrogateescape"), "<string>"
            sys.argv = ["-c", *arguments[_FLAGS + 2 :]]
        else:
            path = sys.argv[0]
            source = read(path)
            main["__file__"], main["__cached__"] = path, None
        exec(compile(source, path, "exec", dont_inherit=True), main)
    except BaseException as error:
        failure = error
    code = exit_code(failure)
    threads, exits = sys.modules.get("threading"), sys.modules.get("atexit")
    if threads is not None:
        threads._shutdown()
    if exits is not None:
        exits._run_exitfuncs()
    posix._exit(code if flush() else code or 120)


run_program()
