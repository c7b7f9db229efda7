"""Runs notebooks without Jupyter: cells in turn, in one namespace. What a cell ends with and prints are its outputs.

``python -m tests.support.notebooks --write FILE...`` puts the outputs of now into the files.
"""

import ast
import contextlib
import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

_NEEDS = "needs "  #: begins the tag of a cell that runs where a package is


def outputs_of(path: Path) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell of the notebook in ``path``, run in its folder; of a cell that needs a package that
    is not installed, those in the file."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(path.parent):
        return [
            _outputs("".join(cell["source"]), f"{path.name}, cell {number}", namespace, number)
            if _can_run(cell)
            else cell["outputs"]
            for number, cell in enumerate(cells, 1)
        ]


def _can_run(cell: dict[str, Any]) -> bool:
    tags = cell["metadata"].get("tags", ())
    needed = [tag.removeprefix(_NEEDS) for tag in tags if tag.startswith(_NEEDS)]
    return all(importlib.util.find_spec(package) for package in needed)


def _outputs(source: str, name: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree, last = ast.parse(source), None
    tail = tree.body[-1] if tree.body else None
    if isinstance(tail, ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tail.value)
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        value = None if last is None else eval(compile(last, name, "eval"), namespace)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": _lines(value._repr_html_()), **data}
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write(path: Path) -> None:
    """Put the outputs of now into the notebook in ``path``."""
    notebook = json.loads(path.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(cells, outputs_of(path), strict=True), 1):
        cell["outputs"], cell["execution_count"] = outputs, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--write"]:
        sys.exit(__doc__)
    for file in sys.argv[2:]:
        write(Path(file).resolve())
