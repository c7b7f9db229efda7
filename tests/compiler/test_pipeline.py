"""Whole networks, from ONNX file to the functional model."""

import gc
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from compiler import pipeline, reference
from compiler.compile import compile_with_report
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.params import KIB, preset
from hw.image.image import Image
from sim.host import run_host
from tests.support.check.races import RaceChecker
from tests.support.graphs import GraphBuilder, check
from tests.support.image_runner import run_image
from tests.support.networks import DIGITS, network


def _run(path: Path, preset_name: str, engines: int, observe: bool) -> None:
    params = preset(preset_name)
    compiled = compile_with_report(path, params, fallback=True, observe=observe, engines=engines)
    image, graph = Image.from_bytes(compiled.image.to_bytes()), compiled.graph
    rng = np.random.default_rng(1)
    inputs = {port.name: rng.uniform(-1, 1, port.shape).astype(port.dtype) for port in graph.inputs}
    expected = reference.run_all(graph, inputs)
    stored = {port.name: expected[port.tensor] for port in graph.inputs}
    results = run_image(image, stored, host=run_host, observer=RaceChecker(params))
    for name, value in results.items():
        assert np.array_equal(value, expected[name]), name
    if observe:
        assert {op.output for op in graph.ops} <= set(results)
    assert sum(len(step.jobs) for step in compiled.plan.steps) == len(image.meta.jobs)


@pytest.mark.parametrize("observe", [False, True])
@pytest.mark.parametrize(("preset_name", "engines"), [("tiny", 1), ("base", 1), ("base", 2)])
def test_digits(preset_name, engines, observe):
    _run(DIGITS, preset_name, engines, observe)


@pytest.mark.parametrize(("preset_name", "engines"), [("tiny", 1), ("base", 2)])
@pytest.mark.parametrize("model", ["ic_resnet8_int8", "kws_dscnn_int8"])
def test_small_networks(model, preset_name, engines):
    _run(network(model), preset_name, engines, observe=False)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["squeezenet_int8_qdq", "resnet50_int8_qdq"])
def test_large_networks(model):
    _run(network(model), "base", 2, observe=False)


@pytest.mark.parametrize("collecting", [True, False])
@pytest.mark.parametrize("engines", [1, 99])
def test_the_collector_of_cycles_is_left_as_it_was(collecting, engines, monkeypatch):
    """Also by a compilation that fails: 99 engines are refused."""
    monkeypatch.setattr(gc, "isenabled", lambda: collecting)  # leaves that of the tests alone
    calls = []
    monkeypatch.setattr(gc, "disable", lambda: calls.append("disable"))
    monkeypatch.setattr(gc, "enable", lambda: calls.append("enable"))
    with nullcontext() if engines == 1 else pytest.raises(CompileError):
        compile_with_report(DIGITS, preset("tiny"), engines=engines)
    assert calls == ["disable", *["enable"] * collecting]


@pytest.mark.parametrize(("size", "told"), [(64, "at least "), (256, "")])
def test_a_model_beyond_dram_is_refused_with_sizes(size, told):
    """By what it needs whatever is decided, or by what it then turns out to need."""
    params = preset("tiny").replace(dram_bytes=size * KIB)
    path = network("kws_dscnn_int8")
    with pytest.raises(CompileError, match=rf"needs {told}\d+ bytes of DRAM .* has {size * KIB}: choose"):
        compile_with_report(path, params, fallback=True)


def test_inputs_beyond_dram_are_refused_before_anything_is_decided(monkeypatch):
    """An image of 1080p on a small machine: searches of minutes would end in the same refusal."""

    def decide(*_):
        raise AssertionError("something was decided")

    monkeypatch.setattr(pipeline, "cuts_that_pay", decide)
    make = GraphBuilder(1)
    make.output(make.conv(make.input((1, 1080, 1920, 3)), 4, (1, 1), (2, 2)))
    need = 1080 * 1920 * 3 + 540 * 960 * 4 + 12 + 64 * KIB
    with pytest.raises(CompileError, match=rf"needs at least {need} bytes of DRAM .* has 4194304: choose a preset"):
        build(make.graph, preset("tiny"))


def test_what_spills_beyond_dram_is_refused_with_sizes():
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 128, 128, 1)), 64, (1, 1))
    make.output(make.pool("max", make.conv(x, 64, (1, 1)), (2, 2), (2, 2)))
    params = preset("tiny").replace(dram_bytes=1024 * KIB)
    with pytest.raises(CompileError, match=r"needs at least \d+ bytes of DRAM .* has 1048576: choose a preset"):
        build(make.graph, params, Options(split=False))


def test_more_engines_than_there_are_are_refused():
    with pytest.raises(CompileError, match="engines must be 1 to 1 on preset 'tiny', not 2"):
        compile_with_report(DIGITS, preset("tiny"), engines=2)


@pytest.mark.parametrize("seed", range(10))
def test_random_networks(seed):
    """Residual blocks, branches and pools in random order, on few bytes of LV2 so that some tensors live in DRAM."""
    build = GraphBuilder(100 + seed)
    rng = build.rng
    live = [build.conv(build.input((1, 12, 12, 5)), 8, (3, 3), (1, 1), (1, 1, 1, 1))]
    for _ in range(8):
        x = live[int(rng.integers(0, len(live)))]
        kind = int(rng.integers(0, 6))
        if kind == 0:
            y = build.conv(x, 8, (3, 3), (1, 1), (1, 1, 1, 1))
        elif kind == 1:
            y = build.conv(x, 8, (3, 3), (1, 1), (1, 1, 1, 1), groups=8)
        elif kind == 2:
            y = build.eltwise("add", x, live[int(rng.integers(0, len(live)))])
        elif kind == 3:
            y = build.conv(build.concat([x, live[-1]] if x != live[-1] else [x, build.table(x)], 3), 8, (1, 1))
        elif kind == 4:
            y = build.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1))
        else:
            y = build.table(x)
        live = [*live[-3:], y]
    for name in live:
        build.output(name)
    params = preset("tiny").replace(lv2_bytes=16 * 1024) if seed % 2 else preset("base")
    check(build.graph, params, observe=seed % 3 == 0, engines=params.engines)
