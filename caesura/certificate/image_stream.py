"""Makes the terms of the response-time analysis of an image: one piece for each stretch between cancellation points."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from caesura.certificate.image_costs import ImageCosts, Neighbours
from caesura.certificate.switch_costs import SwitchCosts
from hw.contract.bus import HostCosts
from hw.image import Image, LiveRange, StepInfo
from sw.admission import WorkPiece

Demand = Callable[[int], int]  #: from cycles to those of DRAM within them


@dataclass(frozen=True)
class ImageTerms:
    """Holds what a stream of an image takes, as ``sw.admission.RequestStream`` has it.

    ``section``: the host's longest work for it that nothing breaks; ``switching``: the host's part of a switch;
    ``service``: for how long DRAM serves a request; ``bodies``: bounds on the body of each job, and on the loads that a
    point of it runs again."""

    pieces: tuple[WorkPiece, ...]
    execution: int
    start: int
    restore: int
    refill: int
    section: int
    switching: int
    service: int
    bodies: tuple[int, ...]

    @property
    def switch(self) -> int:
        """Return what a suspension takes in all, there and back."""
        return max(piece.dump for piece in self.pieces) + self.restore + self.refill


def image_terms(image: Image, engines: int, neighbours: Neighbours, costs: HostCosts | None = None) -> ImageTerms:
    """Return the terms of ``image`` on ``engines`` engines beside ``neighbours``."""
    own = ImageCosts(image, engines, neighbours, costs)
    switch = SwitchCosts(image, engines, neighbours, own, costs)
    pieces = tuple(_Pieces(image, engines, own, switch).all())
    return ImageTerms(
        pieces, own.execution, own.start, _restore(image, own, switch), switch.refill, own.section, own.switching,
        own.service, tuple(_limits(image, own, switch)),
    )  # fmt: skip


def lesser_terms(always: ImageTerms, counted: ImageTerms, demand: Demand) -> ImageTerms:
    """Return the lesser of each two bounds: beside neighbours that load, store and fetch all the time, and beside some
    whose traffic is ``counted`` apart. ``demand``: the longest that DRAM can serve those within so many cycles."""

    def least(longest: int, alone: int) -> int:
        found = alone
        while found < longest and (after := alone + demand(found)) > found:
            found = after
        return min(found, longest)

    pieces = tuple(
        WorkPiece(least(one.cycles, other.cycles), least(one.dump, other.dump), one.on_cpu)
        for one, other in zip(always.pieces, counted.pieces, strict=True)
    )
    names = ("execution", "start", "restore", "refill")
    terms: dict[str, Any] = {name: least(getattr(always, name), getattr(counted, name)) for name in names}
    return replace(always, pieces=pieces, **terms)


class _Pieces:
    """Lists the pieces of an image in order. On several engines each point may be met on all of them, so that every
    piece has the longest dumps of all engines together."""

    def __init__(self, image: Image, engines: int, own: ImageCosts, switch: SwitchCosts) -> None:
        self._image, self._engines, self._own, self._switch = image, engines, own, switch
        self._points: dict[int, list[list[LiveRange]]] = {}
        for point in image.meta.cancel_points:
            self._points.setdefault(point.job, []).append(point.live)

    def all(self) -> Iterator[WorkPiece]:
        """Yield all pieces; behind the last there is nothing to dump."""
        found = [piece for step in self._image.meta.steps for piece in self._of_step(step)]
        longest = self._engines * max((piece.dump for piece in found), default=0)
        for number, piece in enumerate(found, 1):
            dump = piece.dump if self._engines == 1 else longest
            yield WorkPiece(piece.cycles, dump if number < len(found) else 0, piece.on_cpu)

    def _of_step(self, step: StepInfo) -> Iterator[WorkPiece]:
        if step.kind == "host":
            yield WorkPiece(self._own.on_cpu(step), self._switch.dump([]), on_cpu=True)
            return
        for number in range(step.first, step.first + step.count):
            yield from self._of_job(number)

    def _of_job(self, number: int) -> Iterator[WorkPiece]:
        jobs, bounds = self._image.meta.jobs, self._own.stretches[number]
        access = self._own.host.costs.register_access * self._engines  # the write of CONTROL.pause
        for interval, live in zip(bounds.points, self._points.get(number, []), strict=True):
            yield WorkPiece(interval + access, self._switch.dump(live))
        following = jobs[number + 1].live if number + 1 < len(jobs) else []
        yield WorkPiece(bounds.end + access, self._switch.dump(following))


def _restore(image: Image, own: ImageCosts, switch: SwitchCosts) -> int:
    """Return the longest restore of any point, or between two jobs."""
    known = {_key(point.live, point.reload): point for point in image.meta.cancel_points}
    points = [switch.restore(point.live, own.programs.at(point.reload)) for point in known.values()]
    return max([switch.restore(job.live) for job in image.meta.jobs] + points, default=0)


def _limits(image: Image, own: ImageCosts, switch: SwitchCosts) -> list[int]:
    limits = list(own.bodies)
    for point in image.meta.cancel_points:
        limits[point.job] = max(limits[point.job], switch.reload(own.programs.at(point.reload)))
    return limits


def _key(live: list[LiveRange], reload: list[int]) -> tuple[object, ...]:
    return tuple((one.space, one.size, one.dirty) for one in live), tuple(reload)
