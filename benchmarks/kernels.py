"""``caesura bench kernels``: **Run-time kernel matching**, its worked example, how long a look-up takes, and requests
with lengths from a long-tailed distribution."""

import gc
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import caesura
from benchmarks import kernels_ladder, kernels_range
from benchmarks.figures import Figure, Measured, Target
from benchmarks.kernels_cases import (
    KERNELS,
    LENGTHS,
    causal_network,
    example,
    mixed_library,
    same_network,
)
from benchmarks.lab import Lab
from caesura.lengths import LADDER, DynamicModel
from compiler import golden
from sw.kernels import NoKernelError

LOOKUPS, ROUNDS, REQUESTS, CHECKED = 20_000, 5, 120, 30
_WANTED = {512: "a", 1024: "b", 128: "c", 2048: None}


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    return [
        Figure("worked_example", Target(4, 4, "lengths of 4 right"), _worked_example),
        Figure("lookup_p99", Target(2, 0.5, "us", at_most=True), _lookup),
        *kernels_ladder.figures(),
        Figure("lengths_served_causal", Target(100, 100), partial(_served, network=causal_network, how="ladder")),
        Figure("lengths_served_same", Target(100, 100), partial(_served, network=same_network, how="compiled")),
        *kernels_range.figures(),
    ]


def _worked_example(lab: Lab) -> Measured:
    demand, library = example()
    chosen: dict[int, str | None] = {}
    for length in _WANTED:
        try:
            chosen[length] = library.match(demand, length).name
        except NoKernelError as error:
            chosen[length], told = None, str(error)
    right = sum(chosen[length] == wanted for length, wanted in _WANTED.items())
    head = demand.class_1["head_size"]
    return Measured(right, head == 80, {"head_size": head, "chosen": chosen, "without_kernel": told})


def _lookup(lab: Lab) -> Measured:
    """Each look-up is timed alone; what reading the clock takes is taken off. The median of rounds, as other programs
    share the processor."""
    lab.progress.task(f"kernels: {LOOKUPS} look-ups")
    library, demands = mixed_library()
    rng = np.random.default_rng(0)
    asked = [(demands[d], int(v)) for d, v in zip(*rng.integers((0, 1), (100, 129), (LOOKUPS, 2)).T, strict=True)]
    clock, match, rounds = time.perf_counter_ns, library.match, []
    gc.disable()
    try:
        for _ in range(ROUNDS):
            empty, taken = [], []
            for demand, value in asked:
                begin = clock()
                empty.append(clock() - begin)
                begin = clock()
                match(demand, value)
                taken.append(clock() - begin)
            rounds.append([np.percentile(taken, p) - np.median(empty) for p in (50, 99)])
    finally:
        gc.enable()
    median, p99 = (float(np.median(each)) / 1000 for each in zip(*rounds, strict=True))
    kinds = Counter("exact" if match(*each).attributes.covered.exact else "range" for each in asked)
    correct = len(library) == KERNELS and len(kinds) == 2
    return Measured(p99, correct, {"kernels": len(library), "median": median, "matched": dict(kinds)})


def _served(lab: Lab, network: Any, how: str) -> Measured:
    """Return the percent of requests that got a result; ``correct``: the first ones equal onnxruntime's, and every way
    of being served that the row is about has happened."""
    rng = np.random.default_rng(0)
    lengths = np.clip(np.rint(rng.lognormal(np.log(48), 0.9, REQUESTS)), 1, max(LENGTHS)).astype(int).tolist()
    done, equal, padding, ladder = 0, 0, 0, 0
    lab.progress.task(f"kernels: {REQUESTS} requests")
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        onnx.save(network(), path)
        with caesura.open(lab.params, lab.backend) as device:
            with caesura.dynamic(path, device, LENGTHS, cache=False) as model:
                for number, length in enumerate(lengths):
                    x = rng.integers(-128, 128, (1, 16, length)).astype(np.int8)
                    y = model(x)
                    done += 1
                    assert model.last is not None
                    padding += model.last.kernel_length - length
                    ladder += next(rung for rung in LADDER if rung >= length) - length
                    if number < CHECKED:
                        equal += _equals(model, x, y)
                served = dict(model.served)
    seconds = time.process_time() - begin
    detail = {
        "requests": REQUESTS, "different_lengths": len(set(lengths)), "served": served,
        "equal_to_onnxruntime": f"{equal} of {CHECKED} compared",
        "padding_waste_percent": 100 * padding / (sum(lengths) + padding),
        "padding_waste_of_the_ladder_percent": 100 * ladder / (sum(lengths) + ladder),
        "cpu_seconds": seconds,
    }  # fmt: skip
    happened = served.get(how, 0) > 0 and served.get("exact", 0) > 0 and sum(served.values()) == REQUESTS
    return Measured(100 * done / REQUESTS, equal == CHECKED and happened, detail)


def _equals(model: DynamicModel, x: np.ndarray, y: Any) -> bool:
    (wanted,) = golden.golden_outputs(model.dimension.fixed(x.shape[2]), {"x": x}).values()
    return np.array_equal(y, wanted)
