"""Builds the jail's helpers, where there is a C compiler; all else is in pyproject.toml.

Without a compiler the package is built without them, and a host compiles them when it first needs
them. A wheel that has them is for Linux on this kind of machine only.
"""

import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SOURCES = Path("src/loopwright/deploy/nsjail")
COMPILER = shutil.which("cc") or shutil.which("gcc")


class BuildWithHelpers(build_py):
    """Also compiles the helpers into the package."""

    def run(self) -> None:
        """Build; an editable install is left to compile on the host."""
        super().run()
        if COMPILER and not self.editable_mode:
            target = Path(self.build_lib, SOURCES.relative_to("src"), "bin")
            target.mkdir(parents=True, exist_ok=True)
            for line in (SOURCES / "helpers.txt").read_text().splitlines():
                name, *words = line.split()
                command = [COMPILER, "-O2", "-o", str(target.resolve() / name), *words]
                subprocess.run(command, cwd=SOURCES, check=True)


class DistributionWithHelpers(Distribution):
    """Is for one kind of machine when it holds programs."""

    def has_ext_modules(self) -> bool:
        """Say whether there is something compiled."""
        return COMPILER is not None


class WheelWithHelpers(bdist_wheel):
    """Keeps to any Python 3: the programs do not know of it."""

    def get_tag(self) -> tuple[str, str, str]:
        """Name the platform only."""
        return "py3", "none", super().get_tag()[2]


setup(
    distclass=DistributionWithHelpers,
    cmdclass={"build_py": BuildWithHelpers, "bdist_wheel": WheelWithHelpers},
)
