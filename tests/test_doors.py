"""A room is entered by its front: how many imports still go past one.

A room is a top-level folder of the product. Its front is what other rooms may import: the packages named below, and the
tables of ``hw/contract`` one by one. An import from another room that names a module behind a front goes past it.

The table says how many do so today. It may only be changed by hand and in sight: lower a number with every change that
lowers it, until the table is empty. Zero is where it goes.
"""

import pytest

from tests.test_imports import MODULES, ROOT, imports_of

ROOMS = ("hw", "sim", "sw", "compiler", "caesura")
#: Fronts beside the direct subpackages of the rooms in ``DIVIDED``.
FRONTS = {*ROOMS, "caesura.api", "sw.runtime.policies"}
#: Rooms whose direct subpackages, such as ``sim.rtl`` and ``sw.driver``, have a front each.
DIVIDED = ("hw", "sim", "sw")

#: How many modules behind fronts of a room (the second) the files of another (the first) name, summed over those files.
PAST_FRONTS = {
    ("sim", "hw"): 4,
    ("sw", "sim"): 10,
    ("compiler", "sim"): 20,
    ("caesura", "sim"): 61,
    ("caesura", "sw"): 30,
    ("caesura", "compiler"): 46,
    ("benchmarks", "hw"): 4,
    ("benchmarks", "sim"): 70,
    ("benchmarks", "sw"): 35,
    ("benchmarks", "compiler"): 73,
    ("benchmarks", "caesura"): 39,
    ("examples", "sim"): 7,
    ("examples", "compiler"): 5,
    ("examples", "caesura"): 5,
}


def is_front(module: str) -> bool:
    """Whether other rooms may import ``module``."""
    room, *below = module.split(".")
    subpackage = len(below) == 1 and room in DIVIDED and MODULES.get(module, ROOT).name == "__init__.py"
    return module in FRONTS or subpackage or module.startswith("hw.contract.")


def past_fronts(importer: str, source: str) -> list[str]:
    """The modules behind fronts of other rooms that the text of a module in ``importer`` names."""
    others = {name for name in imports_of(source) if name.split(".")[0] in set(ROOMS) - {importer}}
    return sorted(name for name in others if not is_front(name))


def found(importer: str) -> dict[tuple[str, str], list[str]]:
    """What the files of a folder import past fronts, by pair of rooms, as lines for a message."""
    lines: dict[tuple[str, str], list[str]] = {}
    for path in sorted((ROOT / importer).rglob("*.py")):
        for name in past_fronts(importer, path.read_text()):
            lines.setdefault((importer, name.split(".")[0]), []).append(f"{path.relative_to(ROOT)} imports {name}")
    return lines


@pytest.mark.parametrize("importer", [*ROOMS, "benchmarks", "examples"])
def test_imports_past_fronts_are_those_of_the_table(importer):
    lines = found(importer)
    counts = {pair: len(those) for pair, those in lines.items()}
    expected = {pair: count for pair, count in PAST_FRONTS.items() if pair[0] == importer}
    changed = [line for pair, those in lines.items() if counts[pair] != expected.get(pair) for line in those]
    assert counts == expected, "PAST_FRONTS is to say what is found, and to fall:\n" + "\n".join(changed)


def test_the_table_names_rooms():
    assert {imported for _, imported in PAST_FRONTS} <= set(ROOMS)
    assert {importer for importer, _ in PAST_FRONTS} <= {*ROOMS, "benchmarks", "examples"}
    assert all(count > 0 for count in PAST_FRONTS.values())


@pytest.mark.parametrize(
    "line, module",
    [
        ("from sw.driver.errors import DeviceFault", "sw.driver.errors"),
        ("from sw.driver import errors", "sw.driver.errors"),
        ("import sim.rtl.compiled", "sim.rtl.compiled"),
        ("from sim.bus import Bus", "sim.bus"),
        ("from compiler.ir import Graph", "compiler.ir"),
        ("from hw.soc import Soc", "hw.soc"),
        ("def late():\n    from compiler import golden", "compiler.golden"),
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
        "from caesura.terminal import table",
        "from numpy.lib import stride_tricks",
    ],
)
def test_fronts_the_contract_and_the_own_room_are_open(line):
    assert past_fronts("caesura", line) == []
