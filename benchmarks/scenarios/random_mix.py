"""Random scenarios, to find what no one thought of."""

import random
from typing import Any

from benchmarks.scenarios.random_stream import Spread, random_stream
from caesura.scenario import Scenario, parse_scenario

SPREAD = Spread(count=6, gap=(1, 100), deadline=(1, 500), arrival=100, cpu=20, think=5)


def random_mix(seed: int) -> Scenario:
    """Return one to five models, each in a stream of its own, with random layers, arrivals, priorities, engines and
    memory.

    Every second scenario preempts, every third has true durations that differ from the estimates, every fourth loads
    before all of its room is free.
    """
    rng = random.Random(seed)
    memory = rng.choice([100, 300, 1000])
    names = [f"m{number}" for number in range(rng.randint(1, 5))]
    machine: dict[str, Any] = {"engines": rng.choice([1, 1, 2, 4]), "memory": memory}
    if seed % 2:
        machine["preemption"] = {
            "dump": rng.choice([0, 1, 5]),
            "restore": rng.choice([0, 2]),
            "interval": rng.choice([1, 7]),
        }
    if seed % 4 == 0:
        machine["partial_loading"] = True
    if seed % 3 == 0:
        machine["estimate_error"] = 0.3
    content = {
        "name": f"random {seed}",
        "seed": seed,
        "machine": machine,
        "models": {name: {"layers": _layers(rng, memory)} for name in names},
        "streams": [random_stream(rng, name, SPREAD) for name in names],
    }
    return parse_scenario(content, f"random scenario {seed}")


def _layers(rng: random.Random, memory: int) -> list[dict[str, Any]]:
    layers = []
    for number in range(rng.randint(1, 8)):
        layer: dict[str, Any] = {
            "load": rng.choice([0, rng.randint(1, 30)]),
            "compute": rng.choice([0, rng.randint(1, 30), rng.randint(1, 30)]),
            "bytes": rng.choice([0, rng.randint(1, memory // 4), rng.randint(1, memory)]),
        }
        if number and rng.random() < 0.3:
            layer["after"] = sorted({rng.randrange(number) for _ in range(rng.randint(0, 3))})
        layers.append(layer)
    return layers
