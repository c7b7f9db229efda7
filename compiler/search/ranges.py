"""Range kernels: a model with a dynamic dimension compiled for all lengths of a range.

The longest length is compiled as it would be alone. The next shorter ones are compiled by the decisions that were made
for it, which takes a tenth of the time: most goes to the search for an order. Where they do not do, because a tile
less is needed, say, a new stretch begins with decisions of its own. Every length is compiled, so the checks of the
compiler hold for every length; what is kept of them are differences. A stretch also begins where a layer that may
choose its tiles has another number of jobs: with those of the plan it would take longer. Where the shortest length
would still take longer than with decisions of its own, by price, the stretch ends in its middle.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from compiler.dynamic_dimension import DynamicDimension
from compiler.emission.objects.desk import Desk
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.program.semaphores import check_semaphores
from compiler.frontend import import_model
from compiler.ir import CompileError, Graph
from compiler.pipeline import blank, emit_lowered, lowered, planned, planned_cycles, uncollected
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
from compiler.plan.plan import Plan
from compiler.plan.plan_error import OtherJobsError
from compiler.search.lv2_claim import with_claim
from compiler.search.retarget import PlannedLength, retarget
from hw.contract.params import SocParams
from hw.image import Image, KernelAttributes, RangeImage, Stretch

_Made = TypeVar("_Made")

#: What the shortest length of a stretch may take longer by price than with decisions of its own. Prices leave out up to
#: three hundredths of what that costs.
_LOSS = 0.02
_NEAR = 0.8  #: of the longest length of a stretch: shorter ones of at least as much were not seen to lose
_MOST = 64  #: lengths of a stretch: their images are in memory together while it is made

Told = Callable[[int, bool], None]  #: hears of each length that was compiled, and whether a stretch begins with it


def compile_range(
    dimension: DynamicDimension,
    params: SocParams,
    lengths: range,
    attributes: KernelAttributes,
    options: Options | None = None,
    *,
    fallback: bool = False,
    store: ObjectStore | None = None,
    told: Told | None = None,
) -> RangeImage:
    """Return the range kernel of a model for ``lengths``, which has ``attributes``. ``store``: where layers are found
    that were compiled before, and others kept. Raises :class:`CompileError` naming the length that has no kernel."""
    upwards = lengths if lengths.step > 0 else lengths[::-1]
    covered = (attributes.covered.low, attributes.covered.high)
    if not upwards or covered != (upwards[0], upwards[-1]):
        raise CompileError(f"model {dimension.model!r}: the attributes cover {covered}, not {lengths}")
    options = options or Options()
    if options.observe or options.placed:
        raise CompileError(f"model {dimension.model!r}: observed and placed models have no plan for other lengths")
    with Desk(1, store) as desk:
        if options.lv2_limit is None:
            options = _with_claim(dimension, upwards[-1], params, options, fallback, desk)
        compiler = _Compiler(dimension, params, options, fallback, desk, told)
        stretches = [_checked_stretch(dimension.model, images) for images in compiler.stretches(upwards[::-1])]
    return RangeImage(attributes, tuple(stretches[::-1]))


def _with_claim(
    dimension: DynamicDimension, longest: int, params: SocParams, options: Options, fallback: bool, desk: Desk
) -> Options:  # fmt: skip
    """Return ``options`` with the LV2 that pays for the longest length, as all lengths lie in the same."""
    try:
        return with_claim(_graph(dimension, longest, fallback), params, options, desk)[0]
    except CompileError as error:
        raise _at(dimension, longest, error) from error


def _graph(dimension: DynamicDimension, length: int, fallback: bool) -> Graph:
    return import_model(dimension.fixed(length), fallback=fallback, name=dimension.model)


def _at(dimension: DynamicDimension, length: int, error: CompileError) -> CompileError:
    return CompileError(f"length {length} of dimension {dimension.label!r}: {error}")


def _checked_stretch(model: str, images: Mapping[int, Image]) -> Stretch:
    """Return the stretch of ``images``, each of which comes out of it again as it went in."""
    stretch = Stretch.of(images)
    for length, image in images.items():
        if stretch.image(length) != image:
            raise CompileError(f"model {model!r}: internal error: length {length} of a stretch is another program")
    return stretch


class _Compiler:
    """Compiles lengths one after the other, by the plan of an earlier one as far as it does."""

    def __init__(
        self, dimension: DynamicDimension, params: SocParams, options: Options, fallback: bool,
        desk: Desk, told: Told | None,
    ) -> None:  # fmt: skip
        check_semaphores(params)
        self._dimension, self._params, self._options = dimension, params, options
        self._fallback, self._desk, self._told = fallback, desk, told
        self._plans: dict[int, PlannedLength] = {}  #: of lengths that were planned on their own
        self._weights: dict[bytes, bytes] = {}  #: equal ones are held once

    def stretches(self, lengths: Sequence[int]) -> Iterator[dict[int, Image]]:
        """Yield the images of ``lengths``, which go down, by stretch."""
        while lengths:
            images = self._stretch(lengths[:_MOST])
            for number, length in enumerate(images):
                if self._told:
                    self._told(length, number == 0)
            yield images
            lengths = lengths[len(images) :]

    @uncollected()
    def _stretch(self, lengths: Sequence[int]) -> dict[int, Image]:
        """Return the images of as many of ``lengths``, which go down, as the plan of the first does for."""
        self._plans = {length: own for length, own in self._plans.items() if length <= lengths[0]}
        images: dict[int, Image] = {}
        with self._naming(lengths[0]):
            first = self._planned(lengths[0])
            images[lengths[0]] = emit_lowered(first.plan.without_orders(), first.model, self._desk)
        for length in lengths[1:]:
            with self._naming(length):
                image = self._alike(first, length, partial(emit_lowered, desk=self._desk))
            if image is None:
                break
            images[length] = image
        while min(images) < _NEAR * lengths[0] and self._loses(first, min(images)):
            images = dict(list(images.items())[: (len(images) + 1) // 2])
        for image in images.values():
            image.weights = self._weights.setdefault(image.weights, image.weights)
        return images

    def _loses(self, first: PlannedLength, length: int) -> bool:
        """Return whether ``length``, compiled as ``first``, takes longer by price than by a plan of its own."""
        with self._naming(length):
            own = self._planned(length)
            price = planned_cycles(own.plan.without_orders(), own.model, self._desk)
            alike = self._alike(first, length, partial(planned_cycles, desk=self._desk))
        return alike is None or alike > (1 + _LOSS) * price

    def _planned(self, length: int) -> PlannedLength:
        """Return ``length`` with a plan of its own."""
        if length not in self._plans:
            self._plans[length] = planned(*self._free(length), self._desk)
        return self._plans[length]

    def _alike(self, first: PlannedLength, length: int, make: Callable[..., _Made]) -> _Made | None:
        """Return what ``make`` makes of ``length`` planned as ``first`` is; None if that does not do, or has another
        number of jobs."""
        plan, model = self._free(length)
        for free_tiles in (True, False):
            try:
                mine = retarget(first, plan, model, free_tiles=free_tiles)
                return make(mine, model, beneath=first.placement.constants)
            except OtherJobsError:
                return None
            except CompileError:
                continue
        return None

    def _free(self, length: int) -> tuple[Plan, LoweredModel]:
        """Return a plan for ``length`` in which all is free, and the layers that it is for."""
        graph = _graph(self._dimension, length, self._fallback)
        plan = blank(graph, self._params, self._options)
        return plan, lowered(graph, plan)

    @contextmanager
    def _naming(self, length: int) -> Iterator[None]:
        try:
            yield
        except CompileError as error:
            raise _at(self._dimension, length, error) from error
