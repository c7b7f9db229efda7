"""Takes look-up tables into the carry chains that they feed.

A bit of a chain is a look-up table of its own, of inputs A to D, which says whether a carry is passed on. Sums use two
of them, so that a small table ahead of one, if nothing else looks at it, fits in. What a carry is that begins here is
told by the rows of the same table in which C and D are 0, of A and B alone."""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from caesura.fpga.netlist import TOP

Net = int | str  #: its number; "0", "1" or "x" for a constant
_PINS = "ABCD"


def folded(mapped: bytes) -> bytes:
    """Return a mapped netlist, as Yosys' JSON, that does the same with fewer look-up tables."""
    design = json.loads(mapped)
    top = design["modules"][TOP]
    cells, uses = top["cells"], _uses(top)
    tables = {cell["connections"]["Z"][0]: name for name, cell in cells.items() if cell["type"] == "LUT4"}
    for cell in [cell for cell in cells.values() if cell["type"] == "CCU2C"]:
        for half in "01":
            nets = [cell["connections"][pin + half][0] for pin in _PINS]
            alone = sorted(net for net in {*nets} & tables.keys() if uses[net] == nets.count(net))
            ahead = {net: cells[tables[net]] for net in alone}
            taken = _half(nets, cell["parameters"][f"INIT{half}"], ahead)
            if taken is None:
                continue
            gone, pins, cell["parameters"][f"INIT{half}"] = taken
            cell["connections"] |= {pin + half: [net] for pin, net in zip(_PINS, pins, strict=True)}
            for net in gone:
                del cells[tables.pop(net)]
    return json.dumps(design).encode()


def _uses(top: Mapping[str, Any]) -> Counter[Net]:
    """Return how often each net is looked at."""
    found: Counter[Net] = Counter(bit for port in top["ports"].values() for bit in port["bits"])
    for cell in top["cells"].values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] != "output":
                found.update(bits)
    return found


def _half(
    nets: Sequence[Net], table: str, ahead: Mapping[Net, Mapping[str, Any]]
) -> tuple[Sequence[Net], Sequence[Net], str] | None:
    """Return which of the tables ``ahead`` fit into a bit of a chain, the inputs A to D that it has then, and its
    table; None if none does."""
    for number in range(len(ahead), 0, -1):
        for gone in itertools.combinations(ahead, number):
            inner = {net: [ahead[net]["connections"][pin][0] for pin in _PINS] for net in gone}
            inputs = list(dict.fromkeys(
                one for net in nets for one in inner.get(net, [net]) if not isinstance(one, str)
            ))  # fmt: skip
            if len(inputs) > len(_PINS):
                continue
            known = {net: (inner[net], ahead[net]["parameters"]["INIT"]) for net in gone}
            rows = list(_rows(nets, table, inputs, known))
            for pins in itertools.permutations([*inputs, *["1"] * (len(_PINS) - len(inputs))]):
                made = _table(pins, rows)
                if made is not None:
                    return gone, pins, made
    return None


def _rows(
    nets: Sequence[Net], table: str, inputs: Sequence[Net], inner: Mapping[Net, tuple[Sequence[Net], str]]
) -> Iterator[tuple[dict[Net, int], int, int]]:
    """Yield for all values of the ``inputs``: these, whether a carry is passed on, and which begins if not."""
    for values in itertools.product((0, 1), repeat=len(inputs)):
        known: dict[Net, int] = {"0": 0, "1": 1, "x": 0, **dict(zip(inputs, values, strict=True))}
        at = [_looked_up(inner[net][1], [known[one] for one in inner[net][0]]) if net in inner else known[net]
              for net in nets]  # fmt: skip
        yield known, _looked_up(table, at), _looked_up(table, [*at[:2], 0, 0])


def _table(pins: Sequence[Net], rows: Sequence[tuple[dict[Net, int], int, int]]) -> str | None:
    """Return the table of a bit of a chain with inputs ``pins``, or None if there is none."""
    made: dict[int, int] = {}
    for known, passes, _ in rows:
        made[_index([known[pin] for pin in pins])] = passes
    for known, passes, begins in rows:
        if not passes and made.setdefault(_index([known[pin] for pin in pins[:2]]), begins) != begins:
            return None
    return "".join(str(made.get(row, 0)) for row in reversed(range(16)))


def _index(bits: Sequence[int]) -> int:
    return sum(bit << at for at, bit in enumerate(bits))


def _looked_up(table: str, bits: Sequence[int]) -> int:
    return int(table[-1 - _index(bits)])
