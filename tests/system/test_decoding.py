"""Decoders token by token, on the RTL and on two engines: conversations equal the reference, stopped within tokens or
not."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

import caesura
from compiler import Options, compile_with_report, import_model, reference
from hw.contract.params import preset
from sw.runtime import Mechanism, Runtime
from tests.support.step_models import StepNet, quantised_step_model

TINY = preset("tiny")
ROWS, STEPS = 19, 6
NET = StepNet(layers=1, vocabulary=32, key_heads=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> onnx.ModelProto:
    """As PyTorch exports a Llama-shaped layer, in 8 bits."""
    return quantised_step_model(NET, tmp_path_factory.mktemp("decoder") / "q.onnx")


def expected(model: onnx.ModelProto, tokens: list[int]) -> list[np.ndarray]:
    graph = import_model(model, sizes={"past": ROWS})
    ports = [port for port in graph.inputs if port.name in dict(NET.states)]
    past = {port.name: np.zeros(port.shape, port.dtype) for port in ports}
    found = []
    for at, token in enumerate(tokens):
        given = {"input_ids": np.array([[token]]), "position_ids": np.array([[at]]), "past": at, **past}
        made = reference.run(graph, given)
        past = {name: made[present][:, :, :ROWS] for name, present in NET.states}
        found.append(made["logits"])
    return found


@pytest.mark.parametrize(
    ("engines", "backend", "order"),
    [
        pytest.param(1, "native", "search", marks=pytest.mark.slow),
        pytest.param(2, "model", "search", marks=pytest.mark.slow),  # which is most of the time
        (2, "model", "source"),
    ],
)
def test_conversations_that_interrupt_each_other(model, engines, backend, order):
    options = Options(engines=engines, cancel_interval=600, order=order)
    params = replace(TINY, engines=engines)
    image = compile_with_report(model, params, sizes={"past": ROWS}, options=options, jobs=1).image
    tokens = [[int(token) for token in row] for row in NET.tokens(2, STEPS, seed=7)]
    wanted = [expected(model, row) for row in tokens]
    with caesura.open(params, backend) as device:
        slow, urgent = (device.load(image).session() for _ in range(2))
        for token, result in zip(tokens[0][:3], wanted[0], strict=False):
            np.testing.assert_array_equal(slow.step(token)[0]["logits"], result)
        with Runtime(device, preemptive=True, rule=lambda _: Mechanism.DUMP) as runtime:
            for at in range(3, STEPS):
                long = runtime.submit(slow, tokens[0][at])
                short = runtime.submit(urgent, tokens[1][at - 3], priority=1, arrival=device.bus.cycle + 700 * at)
                np.testing.assert_array_equal(long.result()["logits"], wanted[0][at])
                np.testing.assert_array_equal(short.result()["logits"], wanted[1][at - 3])
            assert runtime.switches > 0
