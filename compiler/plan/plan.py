"""Defines the plan of a model: all that the compiler decides, and nothing that follows from it.

What follows is derived again wherever it is needed: fusions, lives of buffers, semaphores, the order of tasks,
addresses of windows and weights, prologues, events, live ranges, bounds and estimates.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from compiler.plan.json_form import decoded, encoded, text_of
from compiler.plan.layers.origin import Origin
from compiler.plan.layers.region_share import Share
from compiler.plan.memory.operand import StagingArea
from compiler.plan.options import Options
from compiler.plan.order.dimensions import Dimension
from compiler.plan.plan_error import PlanError
from compiler.plan.tiles import AnyTiles
from hw.contract.params import ParamError, SocParams

VERSION = 1  #: of the form in which plans are written

Place = Share | int  #: how all engines share a member of a region, or the engine that computes all of it


@dataclass(frozen=True)
class ImageCut:
    """Turns a run of ``operators``, by their names, into several in ``pieces`` along frames, channels, height or width
    of the result of the last. Nothing else reads what the others make. ``within``: of single frames, along which side
    each is cut again, and into how many pieces."""

    kind: ClassVar[str] = "cut"
    operators: frozenset[str]
    dimension: Dimension
    pieces: int
    within: tuple[Dimension, int] | None = None


@dataclass(frozen=True)
class HeadGroups:
    """Turns the chain of operators that ends in the product ``operator`` into one for each group of heads, and of each
    for as many ``stripes`` of the rows. ``groups``: the first head of each, and their number."""

    kind: ClassVar[str] = "heads"
    operator: str
    groups: tuple[tuple[int, int], ...]
    stripes: int = 1


@dataclass(frozen=True)
class InputLoad:
    """Brings ``input`` of the model to LV2 once, before the first layer that reads it."""

    kind: ClassVar[str] = "load"
    input: str


@dataclass(frozen=True)
class PiecesRead:
    """Says that nobody makes the concatenation ``operator``: who reads it reads its pieces where they lie."""

    kind: ClassVar[str] = "pieces"
    operator: str


@dataclass(frozen=True)
class Reload:
    """Lets ``tensor`` leave LV2. If it is ``stored``, a layer of its own copies it to DRAM behind its maker; else it is
    made there. The layers of each of ``loads``, by their names before any tensor leaves, read what is loaded again once
    for all of them; those of ``direct`` read what DRAM keeps. Others read the tensor before it leaves."""

    kind: ClassVar[str] = "reload"
    tensor: str
    stored: bool
    loads: tuple[tuple[str, ...], ...]
    direct: tuple[str, ...] = ()


#: What is changed in a graph before its layers are ordered.
Rewrite = ImageCut | HeadGroups | InputLoad | PiecesRead | Reload


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
    member, None where they are free; ``jobs``: None where they are. A layer on the CPU has neither tiles nor jobs."""

    layers: tuple[str, ...]
    places: tuple[Place, ...] = ()
    tiles: tuple[AnyTiles | None, ...] | None = None
    jobs: tuple[JobPlan, ...] | None = None

    def without_orders(self) -> "StepPlan":
        """Return the step with the tasks of all jobs in the order of the list schedule."""
        return replace(self, jobs=without_order(self.jobs or ()))


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
    ``steps`` is that in which they run. What is None is free, and :func:`compiler.pipeline.fill` decides it."""

    version: int
    model: str
    structure: str
    params: SocParams
    options: Options
    rewrites: tuple[Rewrite, ...] | None = None
    layers: tuple[str, ...] | None = None
    steps: tuple[StepPlan, ...] | None = None
    memory: MemoryPlan | None = None

    @property
    def complete(self) -> bool:
        """Return whether nothing in it is free."""
        decided = None not in (self.rewrites, self.layers, self.steps, self.memory)
        steps = self.steps or ()
        return decided and all(s.jobs is not None and s.tiles is not None and None not in s.tiles for s in steps)

    @property
    def cuts(self) -> list[ImageCut]:
        """Return the cuts among the rewrites."""
        return [one for one in self.rewrites or () if isinstance(one, ImageCut)]

    def without_orders(self) -> "Plan":
        """Return the plan with the tasks of all jobs in the order of the list schedule."""
        return replace(self, steps=self.steps and tuple(step.without_orders() for step in self.steps))

    def write(self, path: Path) -> None:
        """Write the plan as a file, a line for each step and each buffer."""
        path.write_text(text_of(encoded(self)))

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Return the plan in a file. Raises :class:`PlanError` that names the member which is wrong."""
        try:
            fields = json.loads(path.read_text())
        except (OSError, ValueError, RecursionError) as error:
            raise PlanError(f"{path}: no plan: {error or type(error).__name__}") from error
        if not isinstance(fields, dict) or fields.get("version") != VERSION:
            raise PlanError(f"{path}: not a plan of version {VERSION}: compile the model again with --plan")
        try:
            plan: Plan = decoded(cls, fields, str(path))
        except ParamError as error:
            raise PlanError(f"{path}.params: {error}") from error
        return plan
