"""A model with a step on the CPU: the step is a piece of its own, and takes what the run time charges."""

import numpy as np
import onnx
import pytest

import caesura
from caesura.certificate.image_costs import ImageCosts, Neighbours
from caesura.certificate.image_stream import image_terms
from caesura.samples import random_samples
from hw.contract.bus import HostCosts
from hw.contract.params import preset
from sw.runtime import Runtime
from sw.runtime.model_data import HostSteps
from tests.support.onnx_models import Net

TINY = preset("tiny")


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    net = Net()
    x = net.dq(net.input((1, 4, 6, 6)), 0.05)
    x = net.dq(net.q(net.conv(x, 0.05, (4, 4, 1, 1)), 0.1), 0.1)
    x = net.node("ConvTranspose", [x, net.const(net.rng.normal(0, 0.3, (4, 4, 2, 2)), np.float32)], strides=[2, 2])
    x = net.dq(net.q(x, 0.1), 0.1)
    path = tmp_path_factory.mktemp("cpu") / "m.onnx"
    onnx.save(net.model(net.q(net.conv(x, 0.1, (4, 4, 1, 1)), 0.1)), path)
    return caesura.compile(path, TINY, fallback=True)


def test_a_step_takes_what_the_run_time_charges(image):
    steps = [step for step in image.meta.steps if step.kind == "host"]
    costs, charged = ImageCosts(image, 1, Neighbours()), HostSteps(image)
    assert steps
    assert [costs.on_cpu(step) for step in steps] == [charged.cycles(step, HostCosts()) for step in steps]
    pieces = image_terms(image, 1, Neighbours()).pieces
    assert [piece.cycles for piece in pieces if piece.on_cpu] == [costs.on_cpu(step) for step in steps]


def test_a_request_with_a_step_on_the_cpu_stays_within_its_own_time(image):
    costs = ImageCosts(image, 1, Neighbours())
    with caesura.open(TINY, "model") as device:
        model, sample = device.load(image), random_samples(image, 1, 0)[0]
        model.run(sample)
        begin = device.driver.bus.cycle
        request = Runtime(device).submit(model, sample)
        request.result()
    assert request.ended - begin <= costs.start + costs.execution
