"""Runs inside the Verilog simulator: an image through driver and run time, with every AXI channel stalling."""

import os

import cocotb
import numpy as np
from cocotb.task import bridge

from hw.image.image import Image
from sw.driver import Device
from sw.runtime import Session
from tests.cocotb.cocotb_bus import CocotbBus

LIMIT = 100_000  #: cycles; the inference takes about a tenth of that


def infer(bus: CocotbBus, image: Image) -> None:
    """Run one sample of the input file and write outputs and the number of jobs to the output file."""
    device = Device(bus)
    session = Session(device, device.load(image), limit=LIMIT)
    with np.load(os.environ["INPUTS"]) as inputs:
        outputs, stats = session.run(dict(inputs))
    np.savez(os.environ["OUTPUTS"], jobs=len(stats.jobs), logits=outputs["logits"])


@cocotb.test()
async def inference(dut):
    image = Image.load(os.environ["IMAGE"])
    bus = CocotbBus(dut, image.params, stall=float(os.environ["STALL"]), seed=7)
    await bus.start()
    await bridge(infer)(bus, image)
