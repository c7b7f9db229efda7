"""Builds wheels whose only global name is ``caesura``; an editable install sees the checkout as it is."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

sys.path.insert(0, str(Path(__file__).parent))

from release.imports import rearrange


class BuildPy(build_py):
    """Copies the packages, then gives them the places they have in a wheel."""

    def run(self) -> None:
        """Build as setuptools does, and rearrange unless the install is editable."""
        super().run()
        if not self.editable_mode:
            rearrange(Path(self.build_lib))


class EggInfo(egg_info):
    """Writes the metadata of a distribution that has one global name."""

    def run(self) -> None:
        """Write as setuptools does, but for the list of global names."""
        super().run()
        Path(self.egg_info, "top_level.txt").write_text("caesura\n")


setup(cmdclass={"build_py": BuildPy, "egg_info": EggInfo})
