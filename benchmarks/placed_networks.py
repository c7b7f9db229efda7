"""What networks with branches take if each layer runs on one engine, against engines that share each layer: rows of
``caesura bench scheduling``."""

from dataclasses import asdict
from functools import partial

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab, Run
from benchmarks.workloads import workload
from compiler import Options, compile_with_report
from hw.contract.params import preset
from sim import MODEL

BASE = preset("base")


def figures() -> list[Figure]:
    """Return the rows measured on the fast model of ``base``, on two engines and on four."""
    return [
        Figure("placed_squeezenet", Target(1.2, 1.1, "x", at_most=True), partial(_placed, "squeezenet", 2)),
        Figure("placed_squeezenet_4", Target(1.5, 1.1, "x", at_most=True), partial(_placed, "squeezenet", 4)),
        Figure("placed_inception", Target(1.2, 1.1, "x", at_most=True), partial(_placed, "inception", 2)),
        Figure("placed_inception_4", Target(1.5, 1.1, "x", at_most=True), partial(_placed, "inception", 4)),
    ]


def _placed(name: str, engines: int, lab: Lab) -> Measured:
    """Return the cycles of a network with placed layers over those of the same with shared ones. ``auto`` says which
    of them ``--engines auto --placed`` takes."""
    params = BASE.replace(engines=engines)
    with Lab(params, MODEL, lab.progress) as here:
        runs = {how: here.run(name, Options(engines=engines, placed=how == "placed")) for how in ("shared", "placed")}
        lab.progress.task(f"{name}: choosing engines")
        chosen = compile_with_report(workload(name), params, engines="auto", options=Options(placed=True)).choice
    assert chosen is not None
    cycles = {how: run.stats.cycles for how, run in runs.items()}
    detail = {"measured_on": f"{MODEL}, base with {engines} engines", "unit": "cycles", **cycles}
    found = {"auto": asdict(chosen.taken), "busiest": _busiest(runs["placed"])}
    return Measured(cycles["placed"] / cycles["shared"], all(run.correct for run in runs.values()), detail | found)


def _busiest(run: Run) -> float:
    """Return the percent of a run in which its engines had a body to run."""
    bodies = sum(job.end - job.start for job in run.stats.jobs)
    return round(100 * bodies / (run.image.params.engines * run.stats.cycles), 1)
