"""A room is entered by its front.

A room is a top-level folder of the product. Its fronts are what other rooms may import: the packages named below, and
the tables of ``hw/contract`` one by one. What a front has to offer stands in its ``__init__.pyi``, and is loaded when
it is asked for. A front may offer a module whole.
"""

import ast
import importlib
from pathlib import Path

import pytest

from tests.test_imports import MODULES, ROOT, imports_of

ROOMS = ("hw", "sim", "sw", "compiler", "caesura")
#: Fronts beside the direct subpackages of the rooms in ``DIVIDED``.
FRONTS = {*ROOMS, "caesura.fpga", "caesura.lengths", "caesura.scenario", "caesura.views", "sw.runtime.policies"}
#: Rooms whose direct subpackages, such as ``sim.rtl`` and ``sw.driver``, have a front each.
DIVIDED = ("hw", "sim", "sw")

#: What each front offers, as a stub that type checkers read, too.
STUBS = sorted(path for room in ROOMS for path in (ROOT / room).rglob("__init__.pyi"))


def offers(stub: Path) -> list[ast.ImportFrom]:
    """The imports of a stub."""
    return [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]


#: Modules that a front offers whole.
WHOLE = {
    ".".join((*stub.parent.relative_to(ROOT).parts, alias.name))
    for stub in STUBS
    for node in offers(stub)
    if node.module is None
    for alias in node.names
}


def is_front(module: str) -> bool:
    """Whether other rooms may import ``module``."""
    room, *below = module.split(".")
    subpackage = len(below) == 1 and room in DIVIDED and MODULES.get(module, ROOT).name == "__init__.py"
    return module in FRONTS or subpackage or module.startswith("hw.contract.") or module in WHOLE


def past_fronts(importer: str, source: str) -> list[str]:
    """The modules behind fronts of other rooms that the text of a module in ``importer`` names."""
    others = {name for name in imports_of(source) if name.split(".")[0] in set(ROOMS) - {importer}}
    return sorted(name for name in others if not is_front(name))


@pytest.mark.parametrize("importer", [*ROOMS, "benchmarks", "examples"])
def test_nobody_goes_past_a_front(importer):
    lines = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / importer).rglob("*.py"))
        for name in past_fronts(importer, path.read_text())
    ]
    assert not lines, "import it from the front of its room:\n" + "\n".join(lines)


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: str(stub.parent.relative_to(ROOT)))
def test_a_front_has_what_it_says(stub):
    package = importlib.import_module(".".join(stub.parent.relative_to(ROOT).parts))
    names = [alias.name for node in offers(stub) for alias in node.names]
    assert sorted(package.__all__) == sorted(names) == sorted(set(names))
    for name in names:
        getattr(package, name)


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: str(stub.parent.relative_to(ROOT)))
def test_a_name_of_a_front_is_no_module_beside_it(stub):
    """Python would give the module, once something has imported it."""
    names = {alias.name for node in offers(stub) if node.module for alias in node.names}
    assert not names & {path.stem for path in stub.parent.iterdir()}


@pytest.mark.parametrize(
    "line, module",
    [
        ("from sw.driver.errors import DeviceFault", "sw.driver.errors"),
        ("from sw.driver import errors", "sw.driver.errors"),
        ("import sim.rtl.compiled", "sim.rtl.compiled"),
        ("from compiler.compile import Compiled", "compiler.compile"),
        ("from hw.soc import Soc", "hw.soc"),
        ("def late():\n    from compiler.plan import options", "compiler.plan.options"),
        ("if TYPE_CHECKING:\n    from hw.mac.unit import MacUnit", "hw.mac.unit"),
    ],
)
def test_a_planted_import_past_a_front_is_seen(line, module):
    assert past_fronts("caesura", f'"""A module."""\n\nimport ast\n\n{line}\n') == [module]


@pytest.mark.parametrize(
    "line",
    [
        "from sw.driver import DeviceFault",
        "from sw.runtime.policies import policy_named",
        "import sim.rtl",
        "from hw.contract.isa import Op",
        "from caesura.views.terminal import line",
        "from compiler import ir",
        "from numpy.lib import stride_tricks",
    ],
)
def test_fronts_the_contract_and_the_own_room_are_open(line):
    assert past_fronts("caesura", line) == []
