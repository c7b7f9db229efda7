"""Opposing pairs of real networks for the RTL: convolutions with a little memory access, matrices with a lot of it."""

from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime

from benchmarks.workloads.cache import cached
from benchmarks.workloads.layers import Network
from benchmarks.workloads.registry import write_network
from caesura.scenario import Scenario, parse_scenario

PRESET = "base"  #: on ``tiny`` a layer of matrix times vector computes as long as it loads
_VERSION = 1  #: raise it with every change to what is generated


def _convolutions(channels: int, size: int) -> Callable[[int], Network]:
    def network(layers: int) -> Network:
        net = Network(f"conv{channels}x{layers}", (channels, size, size), input="x")
        x = net.input
        for number in range(layers):
            x = net.conv(f"conv{number}", x, channels, 3, 1, 1)
        return net

    return network


def _dense(features: int) -> Callable[[int], Network]:
    def network(layers: int) -> Network:
        net = Network(f"dense{features}x{layers}", (features, 1, 1), input="x")
        x = net.flatten("flat", net.input)
        for number in range(layers):
            x = net.gemm(f"dense{number}", x, features)
        return net

    return network


#: By name: bytes of LV2 for each of two copies, and the network with a number of layers.
COMPUTE_HEAVY = {"conv64": (300 << 10, _convolutions(64, 14)), "conv48": (300 << 10, _convolutions(48, 14))}
MEMORY_HEAVY = {"dense512": (720 << 10, _dense(512)), "dense384": (720 << 10, _dense(384))}
#: Each of one with each of the other, and layers of each in a network of usual depth: so many that compute and memory
#: access of the two together take about equally long.
BALANCED = {
    ("conv64", "dense512"): (23, 25),
    ("conv64", "dense384"): (16, 32),
    ("conv48", "dense512"): (32, 16),
    ("conv48", "dense384"): (25, 23),
}


def pair(compute_heavy: str, memory_heavy: str, *, layers: tuple[int, int], count: int) -> Scenario:
    """Return both models in closed loops of ``count`` requests, two at a time. ``layers``: of each of the two."""
    chosen = {
        compute_heavy: (*COMPUTE_HEAVY[compute_heavy], layers[0]),
        memory_heavy: (*MEMORY_HEAVY[memory_heavy], layers[1]),
    }
    arrivals = {"kind": "closed", "count": count, "concurrency": 2}
    content: dict[str, object] = {
        "name": f"{compute_heavy} x {memory_heavy}",
        "time_unit": "cycles",
        "machine": {"preset": PRESET},
        "models": {
            name: {"onnx": str(_file(make(depth))), "lv2_limit": limit} for name, (limit, make, depth) in chosen.items()
        },
        "streams": [{"name": name, "stages": [{"model": name}], "arrivals": arrivals} for name in chosen],
    }
    return parse_scenario(content, f"pair {compute_heavy} x {memory_heavy}")


def _file(network: Network) -> Path:
    parameters = (_VERSION, network, onnx.__version__, onnxruntime.__version__)
    return cached(network.name, parameters, lambda path: write_network(network, path))
