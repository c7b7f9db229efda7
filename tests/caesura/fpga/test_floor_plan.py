"""Where the modules of a placed design lie, and what of it is drawn."""

import pytest

from caesura.fpga.floor_plan import floor_plan
from caesura.views.floor import area_map, floor_plan as drawn

MODULES = ("machine", "machine.a", "machine.a.deep", "machine.b")


def placed(*cells):
    """A top module with cells by name and tile; those without a tile were not placed."""
    bels = [{"NEXTPNR_BEL": f"X{tile[0]}/Y{tile[1]}/SLICEA.K0"} if tile else {} for _, tile in cells]
    return {"cells": {f"{name}_LUT4_{n}": {"attributes": bels[n]} for n, (name, _) in enumerate(cells)}}


def test_a_tile_belongs_to_the_room_with_most_of_its_cells():
    found = floor_plan(
        placed(*[("machine.a.x", (3, 7))] * 3, *[("machine.b.y", (3, 7))] * 2, *[("machine.b.y", (4, 7))] * 4,
               ("clock", (9, 1)), ("machine.b.gone", None)),
        MODULES,
    )  # fmt: skip
    assert found == {
        "rooms": ["machine.b", "machine.a", "all else"],
        "tiles": [[3, 7, 1, 5], [4, 7, 0, 4], [9, 1, 2, 1]],
    }


def test_rooms_are_as_low_as_they_are_few():
    """Thirteen parts of a module are too many to be told apart, so that the module is one room; what has less than a
    hundredth of the cells is none."""
    many = [(f"machine.a.part{n}.x", (n, 0)) for n in range(13) for _ in range(20)]
    modules = (*MODULES, "machine.small", *(f"machine.a.part{n}" for n in range(13)))
    small = [("machine.small.z", (1, 1))] * 3
    rooms = floor_plan(placed(*many, *[("machine.b.y", (50, 50))] * 90, *small), modules)["rooms"]
    assert rooms == ["machine.a", "machine.b", "all else"]
    few = [cell for cell in many if not cell[0].startswith("machine.a.part12")]
    assert len(floor_plan(placed(*few), modules)["rooms"]) == 12


def test_a_plan_shows_each_tile_and_each_room():
    plot = drawn(floor_plan(placed(("machine.a.x", (3, 7)), ("machine.b.y", (4, 7))), MODULES))
    data = plot.renderers[0].data_source.data
    assert (data["x"], data["y"], data["room"]) == ([3, 4], [7, 7], ["machine.a", "machine.b"])
    assert [str(item.label.value) for item in plot.legend[0].items] == ["machine.a", "machine.b"]
    assert len(set(data["colour"])) == 2


def test_nothing_placed_is_an_empty_plan():
    assert not drawn(floor_plan(placed(), MODULES)).renderers[0].data_source.data["x"]


def test_areas_are_shares_of_the_module_around_them():
    sizes = {"all": 100, "machine": 90, "machine.a": 60, "machine.a.deep": 30, "machine.b": 20, "machine.c": 0}
    plot = area_map([{"module": module, "lut": size} for module, size in sizes.items()], "lut", "LUT")
    data = plot.renderers[0].data_source.data
    box = {
        name: (right - left, bottom - top)
        for name, left, right, top, bottom in zip(
            *(data[key] for key in ("name", "left", "right", "top", "bottom")), strict=True
        )
    }
    assert box.keys() == sizes.keys() - {"machine.c"}
    areas = {name: width * height for name, (width, height) in box.items()}
    assert areas["machine.a"] / areas["machine.b"] == pytest.approx(3)
    assert all(left >= 0 and right <= 1 + 1e-9 for left, right in zip(data["left"], data["right"], strict=True))
    assert max(data["bottom"]) <= 1 + 1e-9 and data["share"][0] == "100.0%"
