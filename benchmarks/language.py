"""``caesura bench language``: how near to the bandwidth of DRAM the linear layers of decoders run for one token.

Each weight is read once and multiplied once, so an inference takes no less than the bytes of its weights over those
that DRAM moves in a cycle. Cycles count from the start of the first prologue or body to the end of the last body.
Nothing runs ahead into the next token. The compiler chooses the number of engines, of which one is enough.

``int4_against_int8`` is how many times as many tokens a second the same layers give with int4 weights as with int8.
"""

from functools import partial

import caesura
from benchmarks import decoding
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import ALONE, Lab, Run
from benchmarks.utilisation import run_detail
from benchmarks.workloads import decoders, workload


def figures() -> list[Figure]:
    """Return all rows, in the order of the report. All of SmolLM2 exceeds the DRAM of ``base``: four layers of it."""
    return [
        Figure("linear_15m", Target(86, 90), partial(of_bandwidth, name="linear_stories15m")),
        Figure("linear_smollm2_135m", Target(88, 92), partial(of_bandwidth, name="linear_smollm2_135m_4")),
        Figure("int4_against_int8", Target(1.75, 1.9, unit="x"), partial(int4_against_int8, name="linear_stories15m")),
        *decoding.figures(),
    ]


def of_bandwidth(lab: Lab, name: str) -> Measured:
    """Return the percent of the bandwidth of DRAM that the weights of decoder ``name`` take."""
    run, weights = _run(lab, name)
    bound = weights / run.image.params.dram_bytes_per_cycle
    detail = {**run_detail(run), "of": "the bytes of the weights over those that DRAM moves in a cycle"}
    detail |= {"weights": weights, "code": len(run.image.code)}
    return Measured(100 * bound / run.stats.cycles, run.correct, detail)


def int4_against_int8(lab: Lab, name: str) -> Measured:
    """Return how many times as many cycles decoder ``name`` takes with int8 weights as with int4 ones."""
    (wide, _), (run, weights) = _run(lab, name), _run(lab, f"{name}_int4")
    detail = {**run_detail(run), "of": "cycles with int8 weights over those with int4 ones"}
    detail |= {"weights": weights, "code": len(run.image.code), "int8_cycles": wide.stats.cycles}
    return Measured(wide.stats.cycles / run.stats.cycles, wide.correct and run.correct, detail)


def _run(lab: Lab, name: str) -> tuple[Run, int]:
    """Return an inference of decoder ``name``, and the bytes of its weights."""
    decoder = decoders.parse(name)
    assert decoder is not None
    lab.progress.task(f"{name}: compiling")
    run = lab.run_image(name, caesura.compile(workload(name), lab.params, engines="auto", options=ALONE))
    return run, decoder.weight_bytes
