"""Random scenarios of small real models for the RTL: to find what no one thought of."""

import random
from typing import Any

from benchmarks.driving.models import models
from benchmarks.scenarios.random_stream import Spread, random_stream
from caesura.scenario import Scenario, parse_scenario
from hw.contract import params as presets

#: Workloads that take a few thousand cycles each on ``tiny``, some more.
SMALL = (
    "conv_16x12x12_16_k3_s1_p1",
    "gemm_1x256x128",
    "conv_8x6x6_8_k3_s1_p1",
    "conv_16x4x4_32_k1_s1_p0",
    "gemm_1x64x64",
    "gemm_4x96x32",
    "conv_16x8x8_16_k3_s1_p1_g16",
)

#: In cycles.
SPREAD = Spread(count=4, gap=(500, 20_000), deadline=(5000, 100_000), arrival=20_000, cpu=5000, think=3000)


def random_rtl(seed: int, preset: str = "tiny") -> Scenario:
    """Return one to four models in streams of their own, with random arrivals, priorities and deadlines; a few requests
    each.

    Every second scenario preempts. On presets with several engines every third places each layer on one engine.
    """
    rng = random.Random(seed)
    names = [f"m{number}" for number in range(rng.randint(1, 4))]
    machine: dict[str, Any] = {"preset": preset, "placed": seed % 3 == 0, "cpus": rng.randint(1, 2)}
    if seed % 2:
        machine["preemption"] = {"dump": 0, "restore": 0, "interval": 1}
    content = {
        "name": f"random {seed}",
        "seed": seed,
        "time_unit": "cycles",
        "machine": machine,
        "models": {name: _model(rng, preset) for name in names},
        "streams": [random_stream(rng, name, SPREAD) for name in names],
    }
    return parse_scenario(content, f"random scenario {seed}")


def _model(rng: random.Random, name: str) -> dict[str, Any]:
    """Return one layer or, less often, a network of a few."""
    if rng.random() < 0.35:
        return {"onnx": rng.choice(models(presets.preset(name)))}
    return {"workload": rng.choice(SMALL)}
