"""Random streams of requests, for random scenarios."""

import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Between which times what is random lies: ``gap`` between requests, ``deadline``; at most ``arrival`` in a trace,
    ``cpu`` on the CPU; ``think``: the one time of a closed loop that thinks at all. ``count``: requests at most."""

    count: int
    gap: tuple[int, int]
    deadline: tuple[int, int]
    arrival: int
    cpu: int
    think: int


def random_stream(rng: random.Random, model: str, spread: Spread) -> dict[str, Any]:
    """Return the requests of ``model`` by one of all kinds of arrivals, some with a stage on the CPU and a second
    run."""
    count = rng.randint(1, spread.count)
    arrivals: dict[str, Any] = rng.choice(
        [
            {"kind": "periodic", "period": rng.randint(*spread.gap), "count": count},
            {"kind": "poisson", "interval": rng.randint(*spread.gap), "count": count},
            {
                "kind": "closed",
                "count": count,
                "concurrency": rng.randint(1, 3),
                "think": rng.choice([0, spread.think]),
            },
            {"kind": "trace", "times": [rng.randint(0, spread.arrival) for _ in range(count)]},
        ]
    )
    stages: list[dict[str, Any]] = [{"model": model}]
    if rng.random() < 0.3:
        post = {"cpu": "post", "duration": rng.randint(0, spread.cpu)}
        stages += [post, {"model": model, "priority": rng.randint(0, 3)}]
    stream = {"name": model, "stages": stages, "arrivals": arrivals, "priority": rng.randint(0, 2)}
    return {**stream, "deadline": rng.randint(*spread.deadline)} if rng.random() < 0.5 else stream
