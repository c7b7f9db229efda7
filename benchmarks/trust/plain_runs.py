"""The campaigns of ``caesura bench trust`` as the ledger records them: a plain run of each."""

from functools import partial

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.trust.campaigns import KINDS, run_campaigns


def figures() -> list[Figure]:
    """A row for each campaign."""
    target = Target(0, 0, "failures", at_most=True)
    return [Figure(name, target, partial(_failures, campaign=name)) for name in KINDS]


def _failures(lab: Lab, campaign: str) -> Measured:
    (row,) = run_campaigns(lab.backend, only=[campaign], told=lab.progress.task)
    assert row.value is not None
    return Measured(row.value, row.correct, row.detail)
