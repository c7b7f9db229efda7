"""The Verilog as it is written, read back by Yosys and simulated through CXXRTL, side by side with the native
backend."""

import re

import numpy as np
import pytest

from compiler.compile import compile_model
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw import Soc
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sim.rtl import CompiledBus, SideBySideBus, SimTop, open_bus, run_yosys, to_rtlil, write_verilog
from sim.rtl.cxxrtl.build import recipe
from sim.rtl.verilog import TOP
from sim.toolchain import Stages
from sw.driver import Device
from sw.runtime import Session

pytestmark = pytest.mark.slow
PARAMS, COSTS = preset("tiny"), HostCosts()


def around(netlist: str, verilog: str) -> str:
    """A ``SimTop`` as RTLIL whose SoC is the module of ``verilog``, by the names of its ports."""
    modules = re.split(r"(?=^(?:attribute .*\n)+module )", netlist, flags=re.MULTILINE)
    outside = "".join(text for text in modules if not re.search(r"^module \\sim_top\.soc\b", text, re.MULTILINE))
    cell = re.search(r"^  cell \\sim_top\.soc \\soc\n((?:    .*\n)+)", outside, re.MULTILINE)
    assert cell
    connected = re.sub(r"(?<=    connect \\)(axil?)__", r"\1_", cell[1])
    head = verilog[: verilog.index("\n);")]
    for port in re.findall(r"^  input wire (?:\[.*\] )?(\w+),?$", head, re.MULTILINE):
        if f"connect \\{port} " not in connected:  # Amaranth has put a constant into the SoC instead
            value = "1'0" if port == "rst" else "\\" + port.replace("_", "__", 1)
            connected += f"    connect \\{port} {value}\n"
    return outside.replace(cell[0], f"  cell \\{TOP} \\soc\n{connected}")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """CXXRTL's simulation of ``tiny`` as Verilog, with the DRAM and the host of the other backends round it."""
    work = tmp_path_factory.mktemp("lockstep")
    verilog = write_verilog(PARAMS, work)[0]
    top = SimTop(PARAMS, Soc(PARAMS))
    netlist = to_rtlil(top, name="sim_top", clock=top.domain.clk)
    (work / "around.il").write_text(around(netlist, verilog.read_text()))
    commands = [
        "read_rtlil around.il",
        f"read_verilog {verilog}",
        "hierarchy -check -top sim_top",
        "write_rtlil netlist.il",
    ]
    run_yosys(commands, work, work / "yosys.log")
    made = recipe(lambda: top, PARAMS, vcd=False)
    return made.build({"netlist.il": (work / "netlist.il").read_text()}, work, work / "log", Stages(quiet=True))


def test_digits_have_the_same_outputs_in_the_same_cycles(library):
    image = compile_model(MODEL, PARAMS)
    sample = np.load(SAMPLES)["input"][:1]
    native = open_bus(PARAMS, "native", costs=COSTS)
    verilog = CompiledBus(PARAMS, library, backend="verilog", costs=COSTS)
    with SideBySideBus({"native": native, "verilog": verilog}) as bus:
        device = Device(bus)
        outputs, stats = Session(device, device.load(image)).run({image.meta.inputs[0].name: sample})
    np.testing.assert_array_equal(outputs["logits"], reference_logits(MODEL, sample))
    assert len(stats.jobs) == len(image.meta.jobs)
