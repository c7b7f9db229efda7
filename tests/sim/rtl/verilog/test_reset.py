"""The emitted Verilog after a reset alone: no register has a value from power-on, no memory is cleared, and nothing of
that comes out, under Icarus, where what is unknown stays unknown."""

import re
import shutil
import subprocess

import pytest

from hw.contract.params import preset
from hw.contract.regs import ID_VALUE
from sim.rtl import write_verilog
from sim.rtl.verilog import TOP

_WATCHED = (
    "axil_arready", "axil_rvalid", "axil_awready", "axil_wready", "axil_bvalid", "irq", "axi_arvalid", "axi_awvalid",
    "axi_wvalid", "axi_rready", "axi_bready",
)  # fmt: skip
#: Looks at the outputs for some hundred cycles, then reads the register ID.
_BENCH = """
`timescale 1ns/1ns
module bench;
  reg clk = 0, rst = {reset}, arvalid = 0;
  wire {wires};
  wire [31:0] rdata;
  integer unknown = 0, n;
  always #5 clk = ~clk;
  {top} dut(.clk(clk), .rst(rst), .axil_araddr(16'd0), .axil_arvalid(arvalid), .axil_arprot(3'd0), .axil_rready(1'b1),
    .axil_rdata(rdata), .axil_awaddr(16'd0), .axil_awvalid(1'b0), .axil_awprot(3'd0), .axil_wvalid(1'b0),
    .axil_wdata(32'd0), .axil_wstrb(4'd0), .axil_bready(1'b1), .axi_arready(1'b1), .axi_awready(1'b1),
    .axi_wready(1'b1), .axi_rvalid(1'b0), .axi_rid(6'd0), .axi_rdata(64'd0), .axi_rlast(1'b0), .axi_rresp(2'd0),
    .axi_bvalid(1'b0), .axi_bid(6'd0), .axi_bresp(2'd0), {connected});
  initial begin
    repeat (4) @(posedge clk);
    rst <= 0;
    repeat (2) @(posedge clk);
    for (n = 0; n < 500; n = n + 1) begin
      @(posedge clk); #1;
      if (^{{{list}}} === 1'bx) unknown = unknown + 1;
    end
    arvalid <= 1;
    for (n = 0; n < 20 && rdata !== 32'd{ident}; n = n + 1) begin
      @(posedge clk); #1;
      if (axil_arready === 1'b1) arvalid <= 0;
    end
    $display("unknown %0d, ID %0d", unknown, rdata);
    $finish;
  end
endmodule
"""


def ran(folder, reset):
    (path,) = write_verilog(preset("tiny"), folder)
    bare, count = re.subn(
        r"^(\s*(?:output )?reg [^=;\n]*?) = [^;,\n]*(?=[;,]|$)", r"\1", path.read_text(), flags=re.MULTILINE
    )
    assert count > 500
    (folder / "bare.v").write_text(bare)
    names = ", ".join(_WATCHED)
    connected = ", ".join(f".{name}({name})" for name in _WATCHED)
    bench = _BENCH.format(reset=int(reset), top=TOP, ident=ID_VALUE, wires=names, list=names, connected=connected)
    (folder / "bench.v").write_text(bench)
    program = folder / "bench.vvp"
    sources = [folder / "bench.v", folder / "bare.v"]
    subprocess.run(["iverilog", "-g2005", "-DSYNTHESIS", "-s", "bench", "-o", program, *sources], check=True)
    return subprocess.run(["vvp", program], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.cocotb
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
def test_a_reset_is_enough(tmp_path):
    assert f"unknown 0, ID {ID_VALUE}" in ran(tmp_path, reset=True)


@pytest.mark.cocotb
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
def test_without_a_reset_outputs_are_unknown(tmp_path):
    """So the check can fail."""
    assert "unknown 500" in ran(tmp_path, reset=False)
