"""Commands in jails of another root than the host's, and with packages."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.adapters.local_jail import LocalJail
from loopwright.adapters.plans import MAX_PACKAGES
from loopwright.adapters.roots import Roots
from loopwright.contracts.failures import RootMissing, SandboxUnavailable, UserError
from loopwright.contracts.workspaces import PYTHON, CommandRequest, CommandResult, Workspace
from tests.adapters.jails import needs_jails
from tests.adapters.stores import reachable_folder

pytestmark = [pytest.mark.nsjail, needs_jails]
SHELL_PARTS = (
    ("/usr/bin/dash", "bin/sh"),
    ("/usr/bin/cat", "bin/cat"),
    ("/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"),
    ("/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6"),
)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roots]:
    """A store with a root of little more than a shell, and one folder of packages."""
    box, packages = tmp_path_factory.mktemp("box"), tmp_path_factory.mktemp("packages")
    for source, name in SHELL_PARTS:
        (box / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, box / name)
    (box / "etc").mkdir()
    (box / "etc" / "passwd").write_text("boxed:x:1000:1000::/:/bin/sh\n")
    (box / "tmp").symlink_to("/etc")
    (packages / "greeting.py").write_text("WORD = 'hello'\n")
    with reachable_folder() as folder:
        store = Roots(folder / "roots")
        store.import_folder(box, "box")
        store.import_packages(packages, "greetings")
        yield store


@pytest.fixture(scope="module", params=["native", "nsjail"])
def jail(
    request: pytest.FixtureRequest, roots: Roots, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalJail]:
    root = tmp_path_factory.mktemp("jails") / "root"
    with LocalJail(root, num_slots=1, launcher=request.param, roots=roots) as opened:
        yield opened


def shell(jail: LocalJail, roots: Roots, command: str) -> CommandResult:
    request = CommandRequest(argv=("/bin/sh", "-c", command), root=roots.get("box").digest)
    return jail.run(Workspace.of({"in": b"given"}), request).result


def test_command_sees_its_root_and_nothing_of_the_host(jail: LocalJail, roots: Roots) -> None:
    result = shell(jail, roots, "cat /etc/passwd in; echo /*")
    assert result.stderr == b""
    assert result.stdout.startswith(b"boxed:x:1000:1000::/:/bin/sh\ngiven/bin /dev /etc")
    assert b"usr" not in result.stdout


def test_mount_points_are_real_whatever_the_root_has_there(jail: LocalJail, roots: Roots) -> None:
    result = shell(jail, roots, "echo x > /tmp/x; cat /tmp/x /dev/null; echo /proc/[0-9]*")
    assert (result.stdout, result.stderr) == (b"x\n/proc/1 /proc/2\n", b"")


def test_programs_are_found_where_images_have_them(jail: LocalJail, roots: Roots) -> None:
    assert shell(jail, roots, "echo $PATH").stdout.startswith(b"/usr/local/sbin:/usr/local/bin:")


@pytest.mark.parametrize("path", ["/x", "/bin/x", "/etc/passwd", "/packages/x"])
def test_root_cannot_be_written(jail: LocalJail, roots: Roots, path: str) -> None:
    assert shell(jail, roots, f"echo x > {path}").exit_code != 0


def test_program_that_the_root_lacks_ends_as_in_a_shell(jail: LocalJail, roots: Roots) -> None:
    request = CommandRequest(argv=(*PYTHON, "-c", "pass"), root=roots.get("box").digest)
    result = jail.run(Workspace(), request).result
    assert (result.exit_code, result.start_error) == (127, "No such file or directory")


def test_packages_are_there_read_only_for_who_asks(jail: LocalJail, roots: Roots) -> None:
    digest = roots.get("greetings").digest
    folder = f"/packages/{digest[:12]}"
    code = f"import greeting; print(greeting.WORD); open('{folder}/x', 'w')"
    request = CommandRequest(
        argv=("/usr/bin/python3", "-c", code), packages=(digest,), env={"PYTHONPATH": folder}
    )
    result = jail.run(Workspace(), request).result
    assert result.stdout == b"hello\n"
    assert b"Read-only file system" in result.stderr
    without = jail.run(Workspace(), request.model_copy(update={"packages": ()})).result
    assert b"No module named 'greeting'" in without.stderr


def test_as_many_packages_as_may_be_are_there_each_once(
    jail: LocalJail, roots: Roots, tmp_path: Path
) -> None:
    digests = []
    for number in range(MAX_PACKAGES):
        (tmp_path / "number").write_text(f"{number}\n")
        digests.append(roots.import_packages(tmp_path, f"number-{number}").digest)
    command = ("/bin/sh", "-c", "cat /packages/*/number | sort -u | wc -l; ls /packages | wc -l")
    request = CommandRequest(argv=command, packages=(*digests, digests[0]))
    assert jail.run(Workspace(), request).result.stdout.split() == [b"64", b"64"]


def test_missing_root_is_refused_and_the_slot_goes_on(jail: LocalJail, roots: Roots) -> None:
    with pytest.raises(RootMissing, match="there is no root"):
        jail.run(Workspace(), CommandRequest(argv=("/bin/true",), root="0" * 64))
    assert jail.run(Workspace(), CommandRequest(argv=("/bin/true",))).result.exit_code == 0


def test_packages_are_no_root(jail: LocalJail, roots: Roots) -> None:
    digest = roots.get("greetings").digest
    with pytest.raises(SandboxUnavailable, match="of kind packages, expected root"):
        jail.run(Workspace(), CommandRequest(argv=("/bin/true",), root=digest))


def test_root_in_use_is_not_removed(jail: LocalJail, roots: Roots) -> None:
    assert shell(jail, roots, "exit 0").exit_code == 0
    with pytest.raises(UserError, match="in use"):
        roots.remove("box")
