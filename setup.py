"""Builds the jail's helpers, where there is a C compiler; all else is in pyproject.toml.

Without a compiler the package is built without them, and a host compiles them when it first needs
them. A wheel that has them is for Linux on this kind of machine only.
"""

import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SOURCES = Path("deploy/nsjail")
COMPILER = shutil.which("cc") or shutil.which("gcc")


class BuildWithHelpers(build_py):
    """Also compiles the helpers into the package."""

    def run(self) -> None:
        """Build; an editable install is left to compile on the host."""
        super().run()
        if COMPILER and not self.editable_mode:
            target = Path(self.build_lib, "loopwright", SOURCES, "bin")
            target.mkdir(parents=True, exist_ok=True)
            for line in (SOURCES / "helpers.txt").read_text().splitlines():
                name, *words = line.split()
                command = [COMPILER, "-O2", "-o", str(target.resolve() / name), *words]
                subprocess.run(command, cwd=SOURCES, check=True)


class PlatformWheel(bdist_wheel):
    """Names the platform of a wheel that holds programs."""

    def finalize_options(self) -> None:
        """Take the platform from the helpers."""
        super().finalize_options()
        self.root_is_pure = COMPILER is None

    def get_tag(self) -> tuple[str, str, str]:
        """Keep to any Python 3: the programs do not know of it."""
        _, _, platform = super().get_tag()
        return "py3", "none", platform


setup(cmdclass={"build_py": BuildWithHelpers, "bdist_wheel": PlatformWheel})
