"""Moves the packages of a built tree below ``caesura``, so that a wheel claims one global name.

In a checkout ``hw``, ``sim``, ``sw`` and others are packages of their own. A wheel holds them as ``caesura._source.hw``
and so on; the files are the same but for the names they import by.
"""

import ast
import re
import shutil
from pathlib import Path

ROOMS = ("benchmarks", "compiler", "examples", "hw", "sim", "sw")
HOME = "caesura._source"

_NAME = re.compile(rf"\b(?=({'|'.join(ROOMS)})\b)")
_QUOTED = re.compile(rf"""(?<=["'])(?=({"|".join(ROOMS)})\.[\w{{"'])""")  #: a module named in a string
_COMMAND = re.compile(rf"(?<=python -m )(?=({'|'.join(ROOMS)})\.)")


class RewriteError(ValueError):
    """Says which import cannot be written with the name the package has in a wheel."""


def rewrite(source: str, name: str) -> str:
    """Return the Python text ``source``, line for line, with packages imported from their place in a wheel.

    Names of modules in strings (``"hw.contract."``) and commands (``python -m examples...``) follow. Raises
    :class:`RewriteError`, with ``name`` and the line, for ``import hw.contract``, whose name has no one-line equal.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        at = getattr(node, "lineno", 0) - 1
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_room(node.module or ""):
            lines[at] = _NAME.sub(f"{HOME}.", lines[at], count=1)
        elif isinstance(node, ast.Import) and any(_is_room(alias.name) for alias in node.names):
            if len(node.names) > 1 or "." in node.names[0].name:
                raise RewriteError(f"{name}:{at + 1}: write `{lines[at].strip()}` as `from ... import ...`")
            lines[at] = lines[at].replace("import ", f"from {HOME} import ", 1)
    return _COMMAND.sub(f"{HOME}.", _QUOTED.sub(f"{HOME}.", "".join(lines)))


def rearrange(built: Path) -> None:
    """Move the packages in the folder ``built`` below ``caesura``, and rewrite every Python file there."""
    home = built.joinpath(*HOME.split("."))
    home.mkdir(parents=True, exist_ok=True)
    home.joinpath("__init__.py").write_text('"""Holds the packages that a checkout has at its top."""\n')
    for room in ROOMS:
        shutil.rmtree(home / room, ignore_errors=True)
        shutil.move(built / room, home / room)
    for path in sorted((built / "caesura").rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            source = path.read_text(encoding="utf-8")
            path.write_text(rewrite(source, str(path.relative_to(built))), encoding="utf-8")


def _is_room(module: str) -> bool:
    return module.split(".")[0] in ROOMS
