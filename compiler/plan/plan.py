"""Defines the plan of a model: all that the compiler decides, and nothing that follows from it.

What follows is derived again wherever it is needed: fusions, lives of buffers, semaphores, the order of tasks,
addresses of windows and weights, prologues, events, live ranges, bounds and estimates.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from compiler.backend.layers.origin import Origin
from compiler.backend.layers.region import Place
from compiler.backend.memory.operand import StagingArea
from compiler.backend.memory.tensor_placement import TensorBuffer
from compiler.backend.options import Options
from compiler.plan.json_form import decoded, encoded, text_of
from compiler.plan.plan_error import PlanError
from compiler.plan.rewrites import Rewrite
from compiler.plan.tiles import AnyTiles
from hw.contract.params import SocParams

VERSION = 1  #: of the form in which plans are written


@dataclass(frozen=True)
class JobPlan:
    """Says how one job runs, on ``engine``, which is one of those that the model is compiled for: the run time chooses
    engines of the device. ``cuts``: the tasks ahead of which a cancellation point stands, by their place in program
    order. ``order``: the tasks in program order by the numbers with which kernels emitted them; None stands for that of
    the list schedule."""

    engine: int
    cuts: tuple[int, ...]
    order: tuple[int, ...] | None = None


def without_order(jobs: Iterable[JobPlan]) -> tuple[JobPlan, ...]:
    """Return ``jobs`` with their tasks in the order of the list schedule."""
    return tuple(replace(job, order=None) for job in jobs)


@dataclass(frozen=True)
class StepPlan:
    """Says what is decided about a step of the model: one of ``layers``, or several that are one region. ``places``: by
    member of a region how engines share it, or the one that computes it; empty for a layer alone. ``tiles``: of each
    member, None where they are free. A layer on the CPU has neither tiles nor jobs."""

    layers: tuple[str, ...]
    places: tuple[Place, ...]
    tiles: tuple[AnyTiles | None, ...]
    jobs: tuple[JobPlan, ...]


@dataclass(frozen=True)
class BufferPlan:
    """Says that ``size`` bytes at ``offset`` of ``segment`` hold ``tensors``, one after the other or all of them. None
    for ``segment``: no layer touches them, or they lie inside another's buffer. ``pitch``: bytes from a pixel to the
    next (0: pixels have no gaps)."""

    tensors: tuple[str, ...]
    segment: int | None
    offset: int
    size: int
    pitch: int = 0

    @classmethod
    def of(cls, tensors: Iterable[str], home: TensorBuffer) -> "BufferPlan":
        """Return what ``home`` says, the buffer of ``tensors``."""
        segment = None if home.segment is None else int(home.segment)
        return cls(tuple(tensors), segment, home.offset, home.size, home.pitch)


@dataclass(frozen=True)
class MemoryPlan:
    """Says how LV2 is divided, and where tensors lie. ``staging``: the area of the first engine; ``windows``: bytes of
    the ring of weight windows of each engine; ``job_weights``: bytes of weights that a job may have at most.
    ``inside``: tensor, the one that it is a part of, and its first element there; ``exports``: tensor, and where an
    observer's copy lies. ``sizes``: bytes used of each segment that holds tensors, by number."""

    staging: StagingArea
    windows: int
    job_weights: int
    buffers: tuple[BufferPlan, ...]
    inside: tuple[tuple[str, str, Origin], ...]
    exports: tuple[tuple[str, int], ...]
    sizes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Plan:
    """Holds all decisions about ``model`` on hardware with ``params``. ``structure``: digest of what they are about,
    see :mod:`compiler.plan.structure`; ``layers``: the names of all layers before any is joined to others. The order of
    ``steps`` is that in which they run."""

    version: int
    model: str
    structure: str
    params: SocParams
    options: Options
    rewrites: tuple[Rewrite, ...]
    layers: tuple[str, ...]
    steps: tuple[StepPlan, ...]
    memory: MemoryPlan

    def write(self, path: Path) -> None:
        """Write the plan as a file, a line for each step and each buffer."""
        path.write_text(text_of(encoded(self)))

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Return the plan in a file. Raises :class:`PlanError` that names the member which is wrong."""
        try:
            fields = json.loads(path.read_text())
        except ValueError as error:
            raise PlanError(f"{path}: no plan: {error}") from error
        if not isinstance(fields, dict) or fields.get("version") != VERSION:
            raise PlanError(f"{path}: not a plan of version {VERSION}: compile the model again with --plan")
        plan: Plan = decoded(cls, fields, str(path))
        return plan
