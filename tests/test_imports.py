"""Imports point down, and never in a circle; imports for types alone count like others."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
#: What a package may import of ours, itself left out: single fronts, or all of a room (``.*``).
FLOORS = {
    "hw": set(),
    "sim": {"hw.*"},
    "sw": {"hw.*", "sim", "sim.host"},
    "compiler": {"hw.*", "sim", "sim.c_library", "sim.cost", "sim.functional", "sim.host"},
    "caesura": {"compiler.*", "hw.*", "sim.*", "sw.*"},
    "benchmarks": {"caesura.*", "compiler.*", "examples.*", "hw.*", "sim.*", "sw.*"},
}


def modules() -> dict[str, Path]:
    found = {}
    for package in FLOORS:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """The modules of ours that a file names, wherever in it."""
    return frozenset(imports_of(path.read_text()))


def imports_of(source: str) -> set[str]:
    """The modules of ours that the text of a module names."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= below & MODULES.keys() or {node.module}
    return {name for name in found if name.split(".")[0] in FLOORS}


def loaded_by(module: str) -> set[str]:
    """``module`` and the packages that it is in, whose ``__init__`` Python runs first."""
    parts = module.split(".")
    return {".".join(parts[: i + 1]) for i in range(len(parts))}


@functools.cache
def graph() -> nx.DiGraph:
    """Which module loads which."""
    return nx.DiGraph(
        (name, loaded)
        for name, path in MODULES.items()
        for other in imports(path)
        for loaded in loaded_by(other) - loaded_by(name) | {other}
        if loaded in MODULES
    )


def within(module: str, allowed: str) -> bool:
    """Whether ``module`` is ``allowed``, or in the room of which all are."""
    return module == allowed or (f"{module}.".startswith(allowed.removesuffix("*")) and allowed.endswith(".*"))


@pytest.mark.parametrize("package", FLOORS)
def test_imports_point_down(package):
    allowed = FLOORS[package] | {f"{package}.*"}
    up = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if name.split(".")[0] == package
        for other in imports(path)
        if not any(within(other, one) for one in allowed)
    ]
    assert not up


def test_there_are_no_circles():
    assert [group for group in nx.strongly_connected_components(graph()) if len(group) > 1] == []


def test_the_check_sees_imports():
    assert graph().has_edge("hw.contract.bus", "hw.contract.params") and len(graph()) > 200


def test_contracts_need_no_amaranth():
    """Drivers and tools read the contracts where no HDL is installed."""
    for path in sorted((ROOT / "hw" / "contract").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            outside = [n for n in names if n.startswith("amaranth") or (n.startswith("hw.") and "contract" not in n)]
            assert not outside, f"{path.name} imports {outside}"
    code = "import sys, hw.image.image, hw.contract.regs, hw.contract.timing; sys.exit('amaranth' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_every_module_is_found_where_it_is_installed(tmp_path):
    """Without the checkout as the current folder, or on the path."""
    program = f"import importlib\nfor name in {sorted(MODULES)}: importlib.import_module(name)"
    ran = subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
