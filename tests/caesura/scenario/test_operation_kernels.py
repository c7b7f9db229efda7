"""Models that run operation by operation in a scenario: a library has their kernels, each request matches its own."""

import numpy as np
import onnx
import pytest

from caesura.scenario import ScenarioError, parse_scenario, serve
from compiler import DynamicDimension, import_model, reference
from hw.contract.params import preset
from hw.image import ImageError
from sim.backends import MODEL
from tests.caesura.lengths.test_operation_model import HEADS, WIDTH, library
from tests.caesura.scenario.test_real_models import content, stream
from tests.support.length_nets import conv_net
from tests.support.operation_nets import attention_net

NET = {"onnx": "net.onnx", "dimension": "L", "kernels": "net.ckl"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of three attentions, a library with kernels of its operations, and a model that is urgent."""
    folder = tmp_path_factory.mktemp("net")
    onnx.save(attention_net(HEADS, WIDTH), folder / "net.onnx")
    library(folder / "net.onnx", folder / "net.ckl", preset("tiny"), lambda _: [range(4, 25, 4)])
    onnx.save(conv_net((1, 1)), folder / "urgent.onnx")
    return folder


def served(folder, spec, *streams, backend=MODEL, **machine):
    models = {"net": {**NET, **spec}, "urgent": {"onnx": "urgent.onnx", "sizes": {"L": 12}}}
    used = {name for one in streams for name in [one["stages"][0]["model"]]}
    told = content({name: models[name] for name in used}, *streams, params={}, **machine)
    return serve(parse_scenario(told, "x.toml"), "fcfs", backend, folder=folder, check=True)


def test_each_request_is_an_inference(folder):
    found = served(folder, {"outputs": "out"}, stream("net", *range(4), lengths=[8, 20]))
    assert (found.outcome.checked, found.mismatches) == (4, [])
    (told,) = found.models
    assert told.requests == 4 and told.model == "net"
    assert len(found.outcome.requests) == 4
    assert all(run.busy > 0 and run.end > run.arrival for run in found.outcome.requests)
    for number, length in enumerate([8, 20, 8, 20]):
        with np.load(folder / "out" / f"net-{number}-0.npz") as file:
            assert next(iter(file.values())).shape[1] == length


@pytest.mark.parametrize("backend", [MODEL, pytest.param("native", marks=pytest.mark.slow)])
def test_an_urgent_model_suspends_them_and_they_go_on(folder, backend):
    arrivals = [1500 * number for number in range(12)]
    found = served(
        folder, {}, stream("net", 0, 1, lengths=[24, 12]), stream("urgent", *arrivals, priority=1),
        preemption={"dump": 0, "restore": 0, "interval": 1}, backend=backend,
    )  # fmt: skip
    assert (found.outcome.checked, found.mismatches) == (14, [])
    assert sum(run.suspended for run in found.outcome.requests if run.model == "net") > 1


def test_one_that_is_late_is_dropped_between_its_parts_and_others_go_on(folder):
    """Without linked programs' help: the CPU computes an operation in the middle, so that there are several parts."""
    library(folder / "net.onnx", folder / "some.ckl", preset("tiny"), lambda demand: (
        [] if demand.class_1.get("head_size") == 20 else [range(4, 25, 4)]
    ))  # fmt: skip
    spec = {"kernels": "some.ckl", "fallback": True}
    whole = served(folder, spec, stream("net", 0, lengths=24)).outcome.requests[0]
    arrivals = [0, 100_000, 200_000]
    for share in (0.1, 0.4, 0.6, 0.9):
        deadline = share * (whole.end - whole.arrival)
        found = served(folder, spec, stream("net", *arrivals, lengths=24, deadline=deadline, late="drop"))
        assert [run.dropped for run in found.outcome.requests] == [True] * 3
        assert found.mismatches == []
    found = served(folder, spec, stream("net", *arrivals, lengths=24, deadline=2 * whole.end, late="drop"))
    assert (found.outcome.checked, found.mismatches) == (3, [])


def test_inputs_of_files_give_what_the_reference_does(folder):
    x = np.random.default_rng(3).integers(-128, 128, (1, 16, WIDTH)).astype(np.int8)
    np.savez(folder / "one.npz", x=x)
    served(folder, {"inputs": "one.npz", "outputs": "files"}, stream("net", 0))
    fixed = DynamicDimension.of(folder / "net.onnx").fixed(16)
    (wanted,) = reference.run(import_model(fixed), {"x": x}).values()
    with np.load(folder / "files" / "net-0-0.npz") as file:
        np.testing.assert_array_equal(next(iter(file.values())), wanted)


def test_what_cannot_be_served_is_named(folder):
    with pytest.raises(ScenarioError, match=r"model 'net': kernels .*net\.ckl: no kernel for operation .* length 64"):
        served(folder, {}, stream("net", 0, lengths=64))
    with pytest.raises(ScenarioError, match="has kernels, which are for lengths, and no dimension"):
        served(folder, {"dimension": None}, stream("net", 0))
    with pytest.raises(
        ScenarioError, match=r"'net' runs operation by operation, on one device: remove machine\.devices"
    ):
        served(folder, {}, stream("net", 0, lengths=8), devices=2)
    (folder / "bad.ckl").write_bytes(b"no library")
    with pytest.raises(ImageError, match=r"bad\.ckl"):
        served(folder, {"kernels": "bad.ckl"}, stream("net", 0, lengths=8))
    with pytest.raises(ImageError, match=r"none\.ckl: cannot be read"):
        served(folder, {"kernels": "none.ckl"}, stream("net", 0, lengths=8))
