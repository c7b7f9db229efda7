"""What is known of a netlist, and done with it, ahead of Yosys."""

import re

import pytest

from caesura.fpga.netlist import elaborated
from caesura.fpga.synthesis import blocks_of_products, synthesise, top_of, with_elements_apart, without_collisions
from hw.contract.params import preset

_CELL = """  cell $mul $1
    parameter \\A_SIGNED 1
    parameter \\A_WIDTH {a}
    parameter \\B_WIDTH {b}
    parameter \\Y_WIDTH {y}
"""


@pytest.mark.parametrize(
    ("a", "b", "blocks"),
    [
        (9, 9, 1),
        (18, 18, 1),
        (7, 7, 1),
        (6, 24, 0),
        (24, 6, 0),
        (10, 23, 1),
        (23, 10, 1),
        (25, 10, 2),
        (24, 24, 1),
        (36, 36, 4),
    ],
)
def test_a_product_takes_a_block_for_each_pair_of_parts(a, b, blocks):
    assert blocks_of_products(_CELL.format(a=a, b=b, y=a + b)) == blocks


def test_a_memory_whose_collisions_nobody_sees_needs_no_logic_for_them():
    lane, dma = (elaborated(preset("tiny"), name).text for name in ("lane", "dma"))
    assert lane.count("COLLISION_X_MASK 1'0") == 1 and without_collisions(lane).count("COLLISION_X_MASK 1'1") == 1
    assert "COLLISION_X_MASK 1'0" in dma and without_collisions(dma) == dma  # its memories do not say so


@pytest.mark.slow
def test_less_haste_takes_fewer_look_up_tables(tmp_path):
    requantiser = elaborated(preset("tiny"), "requantiser")
    fast, small = (_look_up_tables(synthesise(requantiser, tmp_path, logic)) for logic in (None, 7_000))
    assert small < 0.97 * fast


def _look_up_tables(mapped: bytes) -> int:
    return sum(cell["type"] == "LUT4" for cell in top_of(mapped)["cells"].values())


def test_no_element_of_an_array_is_named_like_a_bit():
    executor = elaborated(preset("tiny"), "executor").text
    apart = with_elements_apart(executor)
    assert "  wire width 32 \\parameters[3]\n" in executor and "  wire width 32 \\parameters.3\n" in apart
    named = set(re.findall(r"^ *(?:wire|cell|memory) .*?(\\\S+)$", apart, re.MULTILINE))
    assert not [name for name in named if name.endswith("]")]
    assert len(named) == len(set(re.findall(r"^ *(?:wire|cell|memory) .*?(\\\S+)$", executor, re.MULTILINE)))
    assert apart.count(" [31:0]\n") == executor.count(" [31:0]\n")
