"""The multipliers that the products of a netlist would take are known before synthesis."""

import pytest

from caesura.fpga.synthesis import blocks_of_products

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
