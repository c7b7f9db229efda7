"""What the head of a Verilog file tells, of texts that are made up."""

from hw.contract.params import preset
from sim.rtl.verilog.header import design_header, uses

LANES = [f"lane{k}" for k in (0, 1, 10, 11, *range(2, 10))]  # as Yosys sorts them
MODULES = {
    "top": "module top (\n  input wire clk,\n  output reg [7:0] axi_wdata = 8'h00\n);\n"
    + "".join(f"  top_lane {lane} (\n    .clk(clk)\n  );\n" for lane in LANES)
    + "endmodule\n",
    "top_lane": "module top_lane (\n  input wire clk\n);\n  top_half low (\n  );\n  top_half high (\n  );\nendmodule\n",
    "top_half": "module top_half (\n  input wire clk\n);\nendmodule\n",
}


def test_instances_of_one_module_are_told_together():
    tree = design_header(preset("tiny"), MODULES).split("// hierarchy: 3 modules")[1].splitlines()[1:]
    assert [line.removeprefix("//   ") for line in tree] == [
        "top",
        "  lane0 .. lane11 (12): top_lane",
        "    low .. high (2): top_half",
    ]


def test_uses_are_counted_through_the_hierarchy():
    assert uses(MODULES) == {"top": 1, "top_lane": 12, "top_half": 24}


def test_ports_have_their_widths_and_are_told_once_for_what():
    head = design_header(preset("tiny"), MODULES)
    assert "//   clk        input     1  clock, rising edge\n" in head
    assert "//   axi_wdata  output    8  AXI4 master: memory\n" in head
