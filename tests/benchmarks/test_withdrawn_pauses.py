"""Pauses that are taken back change no output, and each halt is compared with its own bound."""

import numpy as np
import pytest

import caesura
from benchmarks.withdrawn_pauses import withdrawn_pauses
from caesura.samples import random_samples
from compiler.plan.options import Options
from tests.support.networks import DIGITS

SEED = 20


@pytest.fixture(scope="module")
def image():
    return caesura.compile(DIGITS, "tiny", options=Options(cancel_interval=500, lv2_limit="all"))


def run(image, apart):
    """Halts and outputs of a few inferences on the fast model, and outputs without a pause."""
    with caesura.open("tiny", "model") as device:
        model, samples = device.load(image), random_samples(image, 8, SEED)
        plain = [model.run(sample)[0] for sample in samples]
        with withdrawn_pauses(device.driver, image, SEED, apart) as halts:
            outputs = [model.run(sample)[0] for sample in samples]
        return halts, outputs, plain


def test_outputs_stay_and_halts_keep_to_their_bounds(image):
    halts, outputs, plain = run(image, 100)
    assert len(halts.cycles) > 10 and max(halts.cycles) > 100
    assert not halts.beyond, f"seed {SEED}"
    for expected, found in zip(plain, outputs, strict=True):
        assert all(np.array_equal(value, found[name]) for name, value in expected.items())


def test_a_halt_beyond_the_bound_of_its_point_is_told(image):
    short = type(image).from_bytes(image.to_bytes())
    for point in short.meta.cancel_points:
        point.worst_interval = 0
    halts, _, _ = run(short, 100)
    assert any(point is not None and cycles > 50 for _, point, cycles in halts.beyond)
