"""What the fast model takes of the host's memory while it computes with data."""

import tracemalloc

from caesura import Device
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import preset
from sim.model.bus import ModelBus
from tests.support.graphs import GraphBuilder, random_inputs

BASE = preset("base")
_MIB = 1 << 20


def test_a_grouped_convolution_takes_little_memory():
    """Its many short instructions are decoded and prepared; no copy of the data that each works on is kept. The shape
    is one of ResNeXt-50."""
    make = GraphBuilder(1)
    make.output(make.conv(make.input((1, 28, 28, 128)), 128, pads=(1, 1, 1, 1), groups=32))
    image, _ = build(make.graph, BASE, Options(engines=1))
    model = Device(ModelBus(BASE)).load(image)
    tracemalloc.start()
    try:
        model.run(random_inputs(make.graph, 1))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 * _MIB
