"""Copies of this checkout with a mutant in them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.trust.mutants.mutant import Mutant
from benchmarks.trust.round_process import ROOT

#: What campaigns run or compile; the page folder has the C header.
_FOLDERS = ("hw", "sim", "sw", "compiler", "caesura", "benchmarks", "examples", "docs")


@contextmanager
def mutated_tree(mutant: Mutant) -> Iterator[Path]:
    """A copy of this checkout with ``mutant`` applied, until the context ends. Raises ``CodeMoved``."""
    text = mutant.applied((ROOT / mutant.file).read_text())
    with tempfile.TemporaryDirectory(prefix=f"mutant-{mutant.name}-") as folder:
        tree = Path(folder)
        for name in _FOLDERS:
            shutil.copytree(ROOT / name, tree / name, copy_function=_linked)
        target = tree / mutant.file
        target.unlink()
        target.write_text(text)
        yield tree


def _linked(source: str, target: str) -> None:
    """The same file once more where that can be: nothing writes into it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
