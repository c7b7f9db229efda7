"""Opposing pairs: every one of four compute-heavy models with every one of four memory-heavy ones.

Layers differ in size as those of real networks do; durations are drawn from a fixed seed. Some pairs are balanced,
others are bounded by one resource. A layer holds what it loads, but no more than a quarter of on-chip memory: larger
ones stream their weights through a ring.
"""

import random
from typing import Any

from caesura.scenario import Scenario, parse_scenario

MEMORY = 2 << 20
BYTES_PER_TIME = 16.0  #: of memory access, as DRAM of ``base`` delivers per cycle

#: Name: layers, mean compute, mean memory access, in cycles.
COMPUTE_HEAVY = {
    "conv_deep": (50, 20_000, 5_000),
    "conv_wide": (16, 60_000, 12_000),
    "conv_mixed": (30, 30_000, 12_000),
    "attention": (24, 40_000, 8_000),
}
MEMORY_HEAVY = {
    "fc_large": (12, 12_000, 60_000),
    "recurrent": (40, 5_000, 20_000),
    "embedding": (20, 8_000, 30_000),
    "decoder": (32, 12_000, 32_000),
}
NAMES = [(compute, memory) for compute in COMPUTE_HEAVY for memory in MEMORY_HEAVY]


def pair(compute_heavy: str, memory_heavy: str, *, count: int = 1) -> Scenario:
    """Return both models in closed loops of ``count`` requests on one engine."""
    models = {compute_heavy: COMPUTE_HEAVY[compute_heavy], memory_heavy: MEMORY_HEAVY[memory_heavy]}
    content: dict[str, object] = {
        "name": f"{compute_heavy} x {memory_heavy}",
        "time_unit": "cycles",
        "machine": {"engines": 1, "memory": MEMORY},
        "models": {name: {"layers": _layers(name, *shape)} for name, shape in models.items()},
        "streams": [
            {"name": name, "stages": [{"model": name}], "arrivals": {"kind": "closed", "count": count}}
            for name in models
        ],
    }
    return parse_scenario(content, f"pair {compute_heavy} x {memory_heavy}")


def _layers(name: str, count: int, compute: float, load: float) -> list[dict[str, Any]]:
    rng = random.Random(name)
    layers = []
    for _ in range(count):
        size = rng.uniform(0.4, 1.6)
        access = round(load * size * rng.uniform(0.6, 1.4))
        needed = min(int(access * BYTES_PER_TIME), MEMORY // 4)
        layers.append({"compute": round(compute * size * rng.uniform(0.6, 1.4)), "load": access, "bytes": needed})
    return layers


def demand(scenario: Scenario) -> tuple[list[float], list[float]]:
    """Return the times of memory access and of compute of all layers of all requests of a closed-loop scenario, for the
    bound."""
    loads, computes = [], []
    for stream in scenario.streams:
        for stage in stream.stages:
            if stage.model is not None:
                layers = scenario.models[stage.model].flat_layers
                loads += [layer.load for layer in layers] * _count(stream.arrivals)
                computes += [layer.compute for layer in layers] * _count(stream.arrivals)
    return loads, computes


def _count(arrivals: Any) -> int:
    return len(arrivals.times) if arrivals.kind == "trace" else arrivals.count or 0
