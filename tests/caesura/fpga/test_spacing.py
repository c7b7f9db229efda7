"""Rows of a part that stay empty, so that wires have room."""

import json

import pytest

from caesura.fpga import tools
from caesura.fpga.boards import PARTS
from caesura.fpga.flow import Flow
from caesura.fpga.netlist import in_harness
from caesura.fpga.spacing import GAP, closest_spacing, logic, spaced
from caesura.fpga.synthesis import top_of
from sim.toolchain import Stages
from tests.caesura.fpga.test_flow import Power

pytestmark = pytest.mark.skipif(
    any(tools.found(need) is None for need in tools.PACKAGES), reason="pip install 'caesura-npu[fpga]'"
)
PART = PARTS["lfe5um5g-25f"]


def netlist_of(luts):
    cells = {f"lut{n}": {"type": "LUT4", "attributes": {}} for n in range(luts)}
    return json.dumps({"modules": {"top": {"cells": cells}}}).encode()


@pytest.mark.parametrize("name", PARTS)
def test_the_tools_own_tables_know_where_logic_is(name):
    part = PARTS[name]
    assert 8 * sum(map(len, logic(part).values())) == part.luts


def test_each_place_of_every_so_many_rows_is_taken():
    rows = list(logic(PART))
    taken = [name.removeprefix(GAP) for name in top_of(spaced(netlist_of(3), PART, 5))["cells"] if GAP in name]
    assert {int(place.split("/")[1][1:]) for place in taken} == set(rows[4::5])
    assert len(taken) == len(set(taken)) == 16 * sum(len(logic(PART)[row]) for row in rows[4::5])
    assert spaced(netlist_of(3), PART, 0) == netlist_of(3)


@pytest.mark.parametrize(("share", "every"), [(0.3, 4), (0.6, 4), (0.7, 8), (0.79, 0), (1.2, 0)])
def test_rows_are_as_close_as_there_is_room_for(share, every):
    """A design takes four fifths of what is left at most: of 48 rows that is known to a row. No more than each fourth
    is left empty."""
    assert closest_spacing(netlist_of(int(share * PART.luts)), PART) == every


def test_a_design_keeps_out_of_them_and_they_are_not_counted():
    design, stages = in_harness("power", Power(4, registers=True)), Stages(quiet=True)
    dense, wide = (Flow(PART, 100.0, stages, spacing=every).run(design, (1,))[0] for every in (0, 3))
    assert dense["use"] == wide["use"]
    places = logic(PART)
    empty = set(list(places)[2::3])

    def within(result):
        """Cells of tiles of logic, pins left out, in rows that were to stay empty."""
        return sum(cells for x, y, _, cells in result["floor"]["tiles"] if y in empty and x in places[y])

    assert within(wide) == 0 < within(dense)
