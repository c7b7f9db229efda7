"""``caesura bench simspeed``: how long ResNet-50 takes on the simulated RTL, and how many cycles per second that is.

Wall time is that of one inference, from writing the input to reading the output. Building the simulator (cached) and
compiling the model are not in it.
"""

from benchmarks.figures import Figure, Measured
from benchmarks.lab import Lab, Run
from benchmarks.rows import Target

NETWORK = "resnet50"


def figures() -> list[Figure]:
    """All rows, in the order of the report."""
    return [
        Figure("resnet50_seconds", Target(180, 60, "s", at_most=True), _seconds),
        Figure("cycles_per_second", Target(50_000, 150_000, "cycles/s"), _rate),
    ]


def _seconds(lab: Lab) -> Measured:
    run = lab.run(NETWORK)
    return Measured(run.wall_seconds, run.correct, _detail(run))


def _rate(lab: Lab) -> Measured:
    run = lab.run(NETWORK)
    return Measured(run.simulated / run.wall_seconds, run.correct, _detail(run))


def _detail(run: Run) -> dict[str, object]:
    return {
        "workload": run.workload,
        "counted": "one inference, from writing the input to reading the output; the simulator was built before",
        "seconds": round(run.wall_seconds, 3),
        "simulated_cycles": run.simulated,
        "accelerator_cycles": run.stats.cycles,
        "outputs": run.verdict,
    }
