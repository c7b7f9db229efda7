"""Decisions about one step: what was decided, and what is given because the step of another length decided it."""

from dataclasses import dataclass

from compiler.backend.program.job_order import JobOrder
from compiler.plan.tiles import Tiles


@dataclass(frozen=True)
class LayerDecisions:
    """``tiles``: of each member, None where they are free; ``jobs``: the program order and the points of each job."""

    tiles: tuple[Tiles | None, ...]
    jobs: tuple[JobOrder, ...]
