"""The committed digits network through the command line, against onnxruntime; it and one layer on two RTL backends."""

import numpy as np
import pytest

from benchmarks.workloads import workload
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from sim.backends import DEFAULT_BACKEND
from tests.system.command import run_report, wrong_layers

SEVERAL = 20
DIGITS = (MODEL, "--preset", "tiny", "--input", SAMPLES)


_SLOW = [pytest.param(check, marks=pytest.mark.slow) for check in (False, True)]


@pytest.fixture(scope="module", params=_SLOW, ids=["plain", "check"])
def options(request):
    return ["--check"] if request.param else []


@pytest.fixture(scope="module")
def reference(options):
    return run_report(*DIGITS, "--backend", "pysim", *options)


def check_outputs(report):
    expected = reference_logits(MODEL, np.load(SAMPLES)["input"][:1])
    np.testing.assert_array_equal(np.float32(report["outputs"]["logits"]["values"]), expected)


def check_layers(report, samples):
    verdict = report["check"]
    assert (verdict["ok"], verdict["outputs_equal"], verdict["samples"]) == (True, True, samples)
    assert wrong_layers(report) == []
    assert [layer["name"] for layer in verdict["layers"]] == ["conv1", "conv2", "conv3", "add", "pool", "fc"]


def test_pysim_equals_onnxruntime(reference, options):
    check_outputs(reference)
    if options:
        check_layers(reference, 1)


def test_compiled_backend_gives_the_same_report(reference, options):
    """Outputs, cycles in total and per layer, every counter."""
    compiled = run_report(*DIGITS, *options)
    assert (compiled["backend"], reference["backend"]) == (DEFAULT_BACKEND, "pysim")
    assert compiled == reference | {"backend": DEFAULT_BACKEND}


@pytest.mark.slow
def test_pysim_gives_the_same_report_of_one_layer():
    """As of the network, which takes a minute and more there."""
    layer = (workload("conv_8x4x4_8_k1_s1_p0"), "--preset", "tiny", "--check")
    interpreted, compiled = (run_report(*layer, "--backend", backend) for backend in ("pysim", DEFAULT_BACKEND))
    assert (compiled["backend"], interpreted["backend"]) == (DEFAULT_BACKEND, "pysim")
    assert interpreted["check"]["ok"] and wrong_layers(interpreted) == []
    assert compiled == interpreted | {"backend": DEFAULT_BACKEND}


def test_several_samples_on_the_compiled_backend():
    report = run_report(*DIGITS, "--samples", SEVERAL, "--check")
    check_outputs(report)
    check_layers(report, SEVERAL)
    assert len({sample["outputs"] for sample in report["samples"]}) == SEVERAL


def test_waiting_cycles_have_causes():
    """Of all of the run: the causes add up to the waiting cycles, and the parts of the profile to the cycles."""
    report = run_report(*DIGITS, "--profile")
    total = report["profile"]["total"]
    counters, parts = total["counters"], total["parts"]
    missing = {unit: sum(counters[f"{unit}_missing{number}"] for number in range(4)) for unit in ("mac", "vec")}
    assert counters["mac_waiting"] == missing["mac"] + counters["mac_starved"]
    assert counters["vec_waiting"] == missing["vec"]
    waiting = sum(parts[name] for name in ("dram", "activations", "weights", "accumulators"))
    assert waiting == counters["mac_waiting"] > 0
    assert sum(parts.values()) == pytest.approx(report["cycles"], abs=len(parts))


def test_the_preset_with_the_least_logic():
    """Queues of a single instruction, one bank of each scratchpad, two jobs in hand."""
    report = run_report(MODEL, "--preset", "nano", "--input", SAMPLES, "--check")
    check_outputs(report)
    check_layers(report, 1)
