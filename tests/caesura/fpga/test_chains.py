"""Products and sums that become carry chains equal those of Verilog, for all operands."""

from pathlib import Path

import pytest

from caesura.fpga import synthesis, tools

pytestmark = pytest.mark.skipif(tools.found("synthesis") is None, reason="pip install 'caesura-npu[fpga]'")
_CELL = (
    "\\{cell} #(.A_SIGNED({sa}), .B_SIGNED({sb}), .A_WIDTH({a}), .B_WIDTH({b}), .Y_WIDTH({y})) x (.A(A), .B(B), .Y(Y));"
)
_MODULE = "module {name} (input [{a}-1:0] A, input [{b}-1:0] B, output [{y}-1:0] Y); {body} endmodule\n"


def extended(name: str, width: int, to: int, signed: bool) -> str:
    return f"{{{{{to}{{{name}[{width - 1}]}}}}, {name}}}" if signed else f"{{{to}'b0, {name}}}"


def mapped(cell: str, sizes: dict[str, int]) -> str:
    return _MODULE.format(name="gate", body=_CELL.format(cell=cell, **sizes), **sizes)


@pytest.mark.parametrize(
    ("cell", "a", "b", "sa", "sb", "y"),
    [
        ("$__soft_mul", 2, 2, 1, 1, 4),
        ("$__soft_mul", 3, 3, 1, 1, 8),
        ("$__soft_mul", 4, 2, 0, 1, 6),
        ("$__soft_mul", 5, 7, 0, 1, 12),
        ("$__soft_mul", 7, 5, 1, 0, 9),
        ("$__soft_mul", 6, 6, 1, 1, 12),
        ("$__soft_mul", 5, 6, 0, 0, 13),
        ("$add", 7, 9, 1, 1, 12),
        ("$add", 7, 9, 0, 0, 8),
    ],
)
def test_a_chain_equals_the_operator(tmp_path, cell, a, b, sa, sb, y):
    sizes = {"a": a, "b": b, "y": y, "sa": sa, "sb": sb}
    operands = f"wire [39:0] p = {extended('A', a, 40 - a, sa)}, q = {extended('B', b, 40 - b, sb)};"
    body = f"{operands} assign Y = p {'+' if cell == '$add' else '*'} q;"
    (tmp_path / "both.v").write_text(mapped(cell, sizes) + _MODULE.format(name="gold", body=body, **sizes))
    (tmp_path / "chains.v").write_text(Path(synthesis.__file__).with_name("chains.v").read_text())
    tools.yosys(
        [
            "read_verilog -icells both.v", "techmap -map chains.v gate", "select -assert-none gate/t:$__*",
            "select -assert-none gate/t:$add", "read_verilog +/lattice/ccu2c_sim.vh +/lattice/common_sim.vh",
            "hierarchy", "proc", "flatten", "miter -equiv -flatten gold gate both", "hierarchy -top both",
            "sat -verify -prove trigger 0 both",
        ],
        tmp_path,
    )  # fmt: skip


def test_a_product_of_an_array_takes_a_table_for_each_bit_of_its_rows(tmp_path):
    sizes = {"a": 9, "b": 9, "y": 18, "sa": 1, "sb": 1}
    (tmp_path / "gate.v").write_text(mapped("$__soft_mul", sizes))
    (tmp_path / "chains.v").write_text(Path(synthesis.__file__).with_name("chains.v").read_text())
    # Eight additions of up to twelve bits, two bits a cell.
    tools.yosys(
        ["read_verilog -icells gate.v", "techmap -map chains.v", "select -assert-max 45 gate/t:CCU2C"], tmp_path
    )
