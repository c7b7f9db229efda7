"""A compilation holds the instructions of one step at a time, not those of all."""

import gc

from compiler.emission.program.task import Task
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder


def held() -> int:
    """Return how many tasks there are in this process."""
    return sum(type(one) is Task for one in gc.get_objects())


def test_no_task_stays_when_its_step_is_an_object():
    """Without a search for circles of objects, as compilations have none: see ``uncollected``."""
    builder = GraphBuilder(1)
    x = builder.conv(builder.input((1, 20, 20, 16)), 32, pads=(1, 1, 1, 1))
    y = builder.conv(builder.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1)), 32, (1, 1))
    builder.output(builder.eltwise("add", y, x))
    before = held()
    gc.disable()
    try:
        build(builder.graph, preset("tiny"), Options(cancel_interval=500), jobs=1)
        assert held() == before
    finally:
        gc.enable()
