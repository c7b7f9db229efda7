"""A session places layers by the queues of the device as they are: what is in them, and what has left them."""

from typing import ClassVar

import numpy as np
import pytest

from compiler import reference
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.params import KIB, preset
from sw.driver import Device
from sw.runtime import Session
from sw.runtime.device_queues import queue_times
from sw.runtime.policies.placement import LiveQueueTime
from tests.support.fake_soc import FakeSoc
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.placed import branchy, compiled, two_branches

TWO = preset("tiny").replace(engines=2)
LIMIT = 50_000_000


class Watched(LiveQueueTime):
    """Notes what happens to the queues of all sessions."""

    events: ClassVar[list[tuple[str, int, int]]] = []

    def place(self, operator):
        queue = super().place(operator)
        self.events.append(("placed", operator.layer, queue))
        return queue

    def executed(self, operator, queue):
        super().executed(operator, queue)
        self.events.append(("executed", operator.layer, queue))


@pytest.fixture
def watched(monkeypatch):
    Watched.events = []
    monkeypatch.setattr("sw.runtime.rules.LiveQueueTime", Watched)
    return Watched.events


def long_chain(seed: int, depth: int):
    make = GraphBuilder(seed)
    x = make.input((1, 6, 6, 8))
    for _ in range(depth):
        x = make.conv(x, 8, pads=(1, 1, 1, 1))
    make.output(x)
    return make.graph


def expected(graph, inputs):
    every = reference.run_all(graph, inputs)
    return {port.name: every[port.tensor] for port in graph.outputs}


def check(outputs, right):
    for name, value in right.items():
        np.testing.assert_array_equal(outputs[name], value)


def test_layers_are_placed_while_earlier_ones_leave_their_queues(watched):
    graph = branchy(1, 24)
    image = compiled(graph, TWO, regions=False)
    inputs = random_inputs(graph, 1)
    device = Device(FakeSoc(TWO, seed=1))
    check(Session(device, device.load(image)).run(inputs)[0], expected(graph, inputs))
    kinds = [kind for kind, _, _ in watched]
    placed = kinds.count("placed")
    assert placed > 8 and kinds.count("executed") == placed
    assert kinds.index("executed") < len(kinds) - 1 - kinds[::-1].index("placed")
    ahead = np.cumsum([1 if kind == "placed" else -1 for kind in kinds])
    assert max(ahead) <= 8 and ahead[-1] == 0
    where = {layer: queue for kind, layer, queue in watched if kind == "placed"}
    assert all(where[layer] == queue for _, layer, queue in watched)


def test_jobs_of_others_are_in_the_queue(watched):
    """Engine 0 has a chain to run when the session begins: its first layer goes to engine 1."""
    chain, graph = long_chain(1, 12), two_branches(2, 2)
    other, _ = build(chain, TWO, Options(engines=1, lv2_limit=64 * KIB))
    device = Device(FakeSoc(TWO, seed=3, costs=HostCosts.free()))
    busy, model = device.load(other, engines=(0,)), device.load(compiled(graph, TWO, lv2_limit=64 * KIB))
    data, inputs = Session(device, busy), random_inputs(graph, 1)
    data.store(random_inputs(chain, 1))
    device.begin(busy, LIMIT)
    assert queue_times(device, (0, 1)) == [0, 0]
    ids = device.submit(busy, range(len(other.meta.jobs)), limit=LIMIT)
    here, there = queue_times(device, (0, 1))
    assert here == sum(max(layer.load, layer.compute) for layer in other.meta.layers) and there == 0
    assert queue_times(device, (1, 0)) == [there, here]
    check(Session(device, model).run(inputs)[0], expected(graph, inputs))
    assert watched[0] == ("placed", 0, 1)
    device.collect(ids, LIMIT)
    check(data.fetch(), expected(chain, random_inputs(chain, 1)))
    assert queue_times(device, (0, 1)) == [0, 0]


def test_a_session_with_a_limit_places_as_layers_leave_too(watched):
    graph = branchy(1, 24)
    image, inputs = compiled(graph, TWO, regions=False), random_inputs(graph, 1)
    device = Device(FakeSoc(TWO, seed=1))
    model = device.load(image)
    check(Session(device, model, limit=LIMIT).run(inputs)[0], expected(graph, inputs))
    kinds = [kind for kind, _, _ in watched]
    assert kinds.index("executed") < len(kinds) - 1 - kinds[::-1].index("placed")
