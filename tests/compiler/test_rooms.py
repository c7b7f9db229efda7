"""Rooms of the compiler import only rooms that come before them in the pipeline."""

import ast
from pathlib import Path

import pytest

COMPILER = Path(__file__).parents[2] / "compiler"
#: Packages below ``plan`` and ``emission``; modules beside them say what a plan is, and are of no room.
ROOMS = [
    *("plan.layers", "plan.order", "plan.regions", "plan.memory", "plan.split", "plan.tiling"),
    *("emission.program", "emission.kernels", "emission.preempt", "emission.objects", "emission.link"),
]


def rooms_of(path: Path) -> set[str]:
    """The rooms that a file imports from."""
    nodes = ast.walk(ast.parse(path.read_text()))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {".".join(module.split(".")[1:3]) for module in modules if module.startswith("compiler.")} & set(ROOMS)


def test_every_folder_is_a_room():
    folders = [path for half in ("plan", "emission") for path in (COMPILER / half).iterdir() if path.is_dir()]
    found = {f"{path.parent.name}.{path.name}" for path in folders if path.name != "__pycache__"}
    assert found == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_earlier_rooms(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    files = COMPILER.joinpath(*room.split(".")).glob("*.py")
    late = {path.name: rooms_of(path) - allowed for path in files}
    assert not {name: rooms for name, rooms in late.items() if rooms}
