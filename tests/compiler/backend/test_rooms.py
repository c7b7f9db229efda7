"""Rooms of the back end import only rooms that come before them in the pipeline."""

import ast
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[3] / "compiler" / "backend"
ROOMS = ["layers", "order", "memory", "tiling", "program", "kernels", "preempt", "objects", "link"]


def rooms_of(path: Path) -> set[str]:
    """The rooms that a file imports from."""
    nodes = ast.walk(ast.parse(path.read_text()))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {module.split(".")[2] for module in modules if module.startswith("compiler.backend.")} & set(ROOMS)


def test_every_folder_is_a_room():
    assert {path.name for path in BACKEND.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_earlier_rooms(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    late = {path.name: rooms_of(path) - allowed for path in (BACKEND / room).glob("*.py")}
    assert not {name: rooms for name, rooms in late.items() if rooms}
