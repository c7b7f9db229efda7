"""What the accuracy of the fast model is measured on: whole networks, and random ones on parameters of no preset."""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import onnx

from benchmarks.workloads import networks, registry, workload
from benchmarks.workloads.cache import cached
from benchmarks.workloads.conv import ConvShape
from benchmarks.workloads.gemm import Gemm
from benchmarks.workloads.layers import Network
from hw.contract.params import KIB, SocParams, preset

_SMALL: dict[str, Callable[..., Network]] = {
    "resnet50": networks.resnet50,
    "mobilenetv2": networks.mobilenetv2,
    "squeezenet": networks.squeezenet,
}
_DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"
NETWORK_SHARE = 0.25  #: of random cases


@dataclass(frozen=True)
class AccuracyCase:
    """A model, and the SoC that runs it. ``slow``: minutes on the RTL."""

    name: str
    params: SocParams
    path: Callable[[], Path]
    slow: bool = False


def whole_networks(params: SocParams) -> list[AccuracyCase]:
    """Return all in the repository, those of few channels included, and all in the folder ``CAESURA_MODELS``."""
    cases = [AccuracyCase("digits", params, partial(Path, _DIGITS))]
    for name in _SMALL:
        cases.append(AccuracyCase(f"{name}_small", params, partial(_small, name, 8, 32)))
    folder = Path(os.environ.get("CAESURA_MODELS", "models"))
    for path in sorted(folder.glob("*.onnx")):
        cases.append(AccuracyCase(path.stem, params, partial(Path, path), slow=path.stat().st_size > 1 << 20))
    cases += [AccuracyCase(name, params, partial(workload, name), slow=True) for name in registry.NETWORKS]
    return cases


def machines() -> list[SocParams]:
    """SoCs of sizes and memories that no preset has, small enough to be built in a minute."""
    tiny = preset("tiny")
    return [
        tiny.replace(name="two engines", engines=2, lv2_bytes=64 * KIB, dram_latency=80, unit_queue_depth=8),
        tiny.replace(name="wide", pes=4, lv1_bytes=32 * KIB, lv1_banks=4, dram_word=16, axi_outstanding=4),
        tiny.replace(name="square", rows=8, cols=8, lv1_bytes=32 * KIB, unit_queue_depth=2, dram_bandwidth=50),
        tiny.replace(name="one PE", pes=1, rows=8, cols=8, lv0_acc_rows=128, lv2_banks=2, dram_row_miss=60),
        tiny.replace(
            name="short bursts", axi_burst_beats=8, dram_row_bytes=1 * KIB, dram_banks=4, job_slots=8, dram_latency=20,
            axi_outstanding=16,
        ),
    ]  # fmt: skip


def random_cases(count: int, seed: int) -> Iterator[AccuracyCase]:
    """Yield the layers and small networks on :func:`machines` in turn; the same for the same ``seed``."""
    rng = random.Random(seed)
    sets = machines()
    for number in range(count):
        params = sets[number % len(sets)]
        if rng.random() < NETWORK_SHARE:
            kind, width, size = rng.choice(list(_SMALL)), rng.choice([8, 6, 5]), rng.choice([32, 40, 48])
            yield AccuracyCase(f"{kind} 1/{width} {size}", params, partial(_small, kind, width, size))
        else:
            name = _layer(rng)
            yield AccuracyCase(name, params, partial(workload, name))


def _layer(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return Gemm(rng.randint(1, 64), 4 * rng.randint(4, 64), 4 * rng.randint(2, 32)).name
    while True:
        cin, size = rng.choice([3, 8, 12, 16, 24, 32, 48]), rng.randint(6, 28)
        kernel, stride = rng.choice([1, 1, 3, 3, 5]), rng.choice([1, 1, 2])
        depthwise = rng.random() < 0.25
        cout = cin if depthwise else rng.choice([4, 8, 16, 24, 40, 64])
        shape = ConvShape(cin, size, rng.randint(6, 28), cout, kernel, stride, kernel // 2, cin if depthwise else 1)
        if shape.problem() is None and shape.macs < 1_500_000:
            return shape.name


def _small(kind: str, width: int, size: int) -> Path:
    """Return a network of few channels on a small image: all of its kinds of layers in little time."""
    network = _SMALL[kind](width=1 / width, size=size, classes=10)
    parameters = (registry.VERSION, registry.SEED, network, onnx.__version__, registry.onnxruntime.__version__)
    return cached(f"{kind}_small", parameters, lambda path: registry.write_network(network, path))
