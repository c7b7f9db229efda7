"""What a choice of engines gains on the compiled RTL: rows of ``caesura bench scheduling``.

Two tenants, each on half of the engines, against the same two in turns on one half; and a network with two branches
whose layers are placed on two engines, against one engine.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.workloads.cache import cached
from benchmarks.workloads.layers import Network
from benchmarks.workloads.registry import write_network
from caesura import Device, Image, Model, Options, RunStats, Runtime, Sample, compile, random_samples
from hw.contract.params import KIB, preset
from sim import DEFAULT_BACKEND
from sim.rtl import open_bus

FOUR = preset("tiny").replace(engines=4, lv2_bytes=256 * KIB)  #: that of ``placement_rtl``, so its simulator serves
MEASURED_ON = {"measured_on": f"{DEFAULT_BACKEND}, tiny with 4 engines and 256 KiB of LV2"}
ROUNDS = 4  #: requests of each tenant
_VERSION = 1  #: raise it with every change to what is generated


def figures() -> list[Figure]:
    """Return the rows measured on the compiled RTL, on four engines whatever preset was asked for."""
    return [
        Figure("rtl_two_tenants_throughput", Target(1.8, 1.9, "x"), _tenants),
        Figure("rtl_two_branches_speedup", Target(1.5, 1.8, "x"), _branches),
    ]


def _tenants(lab: Lab) -> Measured:
    """Throughput of two models side by side, on two engines each, over that of taking turns on two engines."""
    image = compile(_chain(), FOUR, engines=2, options=Options(lv2_limit=FOUR.lv2_bytes // 2))
    with Device(open_bus(FOUR, DEFAULT_BACKEND)) as device:
        models = [device.load(image) for _ in range(2)]
        sample = random_samples(image, 1, 1)[0]
        alone, _ = models[0].run(sample)
        turns, equal = _serve(device, models, sample, alone, ((0, 1), (0, 1)))
        beside, also = _serve(device, models, sample, alone, ((0, 1), (2, 3)))
    detail = {**MEASURED_ON, "unit": "cycles", "in_turns": turns, "side_by_side": beside, "requests": 2 * ROUNDS}
    return Measured(turns / beside, equal and also, detail)


def _serve(
    device: Device, models: list[Model], sample: Sample, alone: Sample, engines: tuple[tuple[int, ...], ...]
) -> tuple[int, bool]:
    """Cycles until all requests have ended, and whether all outputs are those of the model alone."""
    begin, runtime = device.bus.cycle, Runtime(device, "round_robin")
    requests = [
        runtime.submit(model, sample, engines=chosen)
        for _ in range(ROUNDS)
        for model, chosen in zip(models, engines, strict=True)
    ]
    runtime.run_until_done()
    return device.bus.cycle - begin, all(_equal(request.result(), alone) for request in requests)


def _branches(lab: Lab) -> Measured:
    """Return the cycles of a network with two branches on one engine, over those with its layers placed on two."""
    images = {
        "one_engine": compile(_fork(), FOUR, engines=1),
        "placed_on_two": compile(_fork(), FOUR, engines=2, placed=True),
        "shared_by_two": compile(_fork(), FOUR, engines=2),
    }
    sample = random_samples(images["one_engine"], 1, 1)[0]
    with Device(open_bus(FOUR, DEFAULT_BACKEND)) as device:
        runs = {name: _run(device, image, sample) for name, image in images.items()}
    cycles = {name: stats.cycles for name, (_, stats) in runs.items()}
    equal = all(_equal(outputs, runs["one_engine"][0]) for outputs, _ in runs.values())
    detail = {**MEASURED_ON, "unit": "cycles", **cycles}
    return Measured(cycles["one_engine"] / cycles["placed_on_two"], equal, detail)


def _run(device: Device, image: Image, sample: Sample) -> tuple[Sample, RunStats]:
    model = device.load(image)
    result = model.run(sample)
    device.unload(model)
    return result


def _equal(outputs: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> bool:
    return all(np.array_equal(outputs[name], others[name]) for name in others)


def _chain() -> Path:
    """Three convolutions."""
    net = Network("three_convolutions", (16, 16, 16), input="x")
    x = net.input
    for name in ("first", "second", "third"):
        x = net.conv(name, x, 32, 3, 1, 1)
    return _written(net)


def _fork() -> Path:
    """Return a convolution, two branches of three that read it, and their sum."""
    net = Network("two_branches", (16, 16, 16), input="x")
    stem = net.conv("stem", net.input, 16)
    left = right = stem
    for depth in range(3):
        left, right = (net.conv(f"{side}{depth}", x, 16, 3, 1, 1) for side, x in (("left", left), ("right", right)))
    net.add("sum", left, right)
    return _written(net)


def _written(net: Network) -> Path:
    parameters = (_VERSION, net, onnx.__version__, onnxruntime.__version__)
    return cached(net.name, parameters, lambda path: write_network(net, path))
