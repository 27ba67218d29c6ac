"""The commands ``loopwright sandbox root``, and what commands in the sandbox see of roots."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopwright.cli.sandbox import app
from tests.adapters.images import Layout, as_tar, file, image_of, pack
from tests.adapters.jails import as_ordinary_user, needs_jails
from tests.adapters.stores import reachable_folder

Command = Callable[..., "subprocess.CompletedProcess[str]"]
COMPILER = shutil.which("cc")


@pytest.fixture
def store() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder / "roots"


@pytest.fixture
def sandbox(store: Path) -> Command:
    """Give ``loopwright sandbox``, with roots of its own."""
    environment = {**os.environ, "LOOPWRIGHT_ROOTS_DIR": str(store)}

    def run(*words: object) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "loopwright.cli", "sandbox", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "module.py").write_text("word = 'from a package'\n")
    return tmp_path / "files"


def test_imported_root_is_listed_until_it_is_removed(sandbox: Command, folder: Path) -> None:
    digest = json.loads(sandbox("root", "import", "box", folder, "--json").stdout)["digest"]
    (listed,) = json.loads(sandbox("root", "list", "--json").stdout)
    assert (listed["digest"], listed["names"], listed["kind"]) == (digest, ["box"], "root")
    assert digest in sandbox("root", "list").stdout
    removed = json.loads(sandbox("root", "remove", "box", "--json").stdout)
    assert removed == {"removed": "box", "digest": digest}
    assert json.loads(sandbox("root", "list", "--json").stdout) == []


def test_path_that_is_empty_does_not_mean_the_current_folder(sandbox: Command) -> None:
    done = sandbox("root", "import", "box", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'PATH': expected a path, got nothing" in done.stderr


def test_layouts_are_known_from_folders_by_what_they_hold(sandbox: Command, tmp_path: Path) -> None:
    path = image_of(tmp_path / "image", [file("usr/bin/tool", b"1")])
    for given in (path, as_tar(path)):
        record = json.loads(sandbox("root", "import", "box", given, "--json").stdout)
        assert record["source"]["image"].startswith("sha256:")


def test_tag_chooses_among_images(sandbox: Command, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "image")
    name = "org.opencontainers.image.ref.name"
    images = [layout.image(pack([file(tag)]), annotations={name: tag}) for tag in ("a", "b")]
    done = sandbox("root", "import", "box", layout.write(*images), "--tag", "b", "--json")
    assert json.loads(done.stdout)["source"]["tag"] == "b"
    done = sandbox("root", "import", "box", layout.path)
    assert (done.returncode, "--tag" in done.stderr) == (2, True)


def test_what_was_left_out_is_said(sandbox: Command, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "left out: pipe (a pipe)" in sandbox("root", "import", "box", folder).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("root", "import", "box", "/nowhere"), "/nowhere was not imported"),
        (("root", "import", "a/b", "{folder}"), "'a/b' cannot name a root"),
        (("root", "import", "box", "{folder}", "--tag", "1"), "--tag: expected an OCI image"),
        (("root", "import", "box", "{folder}/module.py", "--packages"), "--packages: expected"),
        (("root", "remove", "box"), "there is no root 'box'"),
        (("run", "--root", "box", "--", "true"), "--root: there is no root 'box'"),
        (("run", "--packages", "box", "--", "true"), "--packages: there is no root 'box'"),
    ],
)
def test_wrong_words_are_answered_with_one_message(
    sandbox: Command, folder: Path, words: tuple[str, ...], said: str
) -> None:
    done = sandbox(*(word.format(folder=folder) for word in words))
    assert done.returncode == 2
    assert said in done.stderr


def test_root_and_packages_are_not_taken_for_each_other(sandbox: Command, folder: Path) -> None:
    sandbox("root", "import", "box", folder)
    sandbox("root", "import", "lib", folder, "--packages")
    done = sandbox("run", "--root", "lib", "--packages", "box", "--", "true")
    assert done.returncode == 2
    assert "--root: 'lib' was imported for --packages" in done.stderr
    assert "--packages: 'box' was imported for --root" in done.stderr


@pytest.mark.nsjail
@needs_jails
def test_packages_are_imported_by_python_and_cannot_be_changed(
    sandbox: Command, folder: Path
) -> None:
    sandbox("root", "import", "lib", folder, "--packages")
    code = (
        "import module, os\nprint(module.word, os.path.exists(module.__cached__))\n"
        "try: open(module.__file__, 'a')\nexcept OSError as error: print(error.strerror)"
    )
    done = sandbox("run", "--packages", "lib", "--", "python3", "-c", code)
    assert done.stdout == "from a package True\nRead-only file system\n", done.stderr


@pytest.mark.nsjail
@needs_jails
def test_packages_are_imported_by_who_is_not_root_too(tmp_path: Path) -> None:
    def run() -> list[object]:
        os.environ["LOOPWRIGHT_ROOTS_DIR"] = str(tmp_path / "roots")
        tempfile.tempdir = str(tmp_path)
        given = tmp_path / "given"
        given.mkdir()
        (given / "module.py").write_text("word = 'from a package'\n")
        python = ("python3", "-c", "import module; print(module.word)")
        wanted = ("run", "--degraded", "--strict", "5", "--packages", "lib", "--", *python)
        runner = CliRunner()
        made = runner.invoke(app, ["root", "import", "lib", str(given), "--packages"])
        done = runner.invoke(app, wanted)
        return [made.exit_code, done.stdout, f"{done.stderr}{done.exception}"]

    exit_code, stdout, stderr = as_ordinary_user(run, tmp_path)["value"]
    assert (exit_code, stdout) == (0, "from a package\n"), stderr


@pytest.mark.nsjail
@needs_jails
@pytest.mark.skipif(COMPILER is None, reason="the program in the root is compiled")
def test_command_of_another_root_sees_nothing_of_this_machine(
    sandbox: Command, tmp_path: Path
) -> None:
    assert COMPILER is not None
    source = tmp_path / "tool.c"
    source.write_text(
        "#include <stdio.h>\n#include <unistd.h>\n"
        'int main(void) { printf("%d %d\\n", access("/usr/bin/tool", F_OK),'
        ' access("/usr/bin/python3", F_OK)); return 0; }\n'
    )
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    command = [COMPILER, "-static", "-o", str(root / "usr/bin/tool"), str(source)]
    subprocess.run(command, check=True)
    sandbox("root", "import", "box", root)
    done = sandbox("run", "--root", "box", "--", "/usr/bin/tool")
    assert done.stdout == "0 -1\n", done.stderr
