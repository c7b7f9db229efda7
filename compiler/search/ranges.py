"""Range kernels: a model with a dynamic dimension compiled for all lengths of a range.

The longest length is compiled as it would be alone. The next shorter ones are compiled by the decisions that were made
for it, which takes a tenth of the time: most goes to the search for an order. Where they do not do, because a tile
less is needed, say, a new stretch begins with decisions of its own. Every length is compiled, so the checks of the
compiler hold for every length; what is kept of them are differences. A stretch also begins where a layer that may
choose its tiles has another number of jobs: with those of the plan it would take longer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from compiler.dynamic_dimension import DynamicDimension
from compiler.emission.objects.desk import Desk
from compiler.emission.objects.object_store import ObjectStore
from compiler.frontend import import_model
from compiler.ir import CompileError, Graph
from compiler.pipeline import blank, emit_lowered, lowered, planned, uncollected
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.options import Options
from compiler.plan.plan import Plan
from compiler.plan.plan_error import OtherJobsError
from compiler.search.lv2_claim import with_claim
from compiler.search.retarget import PlannedLength, retarget
from hw.contract.params import SocParams
from hw.image import Image, KernelAttributes, RangeImage, Stretch

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
        self._dimension, self._params, self._options = dimension, params, options
        self._fallback, self._desk, self._told = fallback, desk, told
        self._last: PlannedLength | None = None
        self._weights: dict[bytes, bytes] = {}  #: equal ones are held once

    def stretches(self, lengths: Sequence[int]) -> Iterator[dict[int, Image]]:
        """Yield the images of ``lengths``, which go down, by stretch."""
        images: dict[int, Image] = {}
        for length in lengths:
            image, begins = self._image(length, len(images) < _MOST)
            if begins and images:
                yield images
                images = {}
            images[length] = image
            if self._told:
                self._told(length, begins)
        yield images

    @uncollected()
    def _image(self, length: int, planned_before: bool) -> tuple[Image, bool]:
        """Return the image for ``length``, if possible as the last that has a plan of its own; whether it has one."""
        try:
            graph = _graph(self._dimension, length, self._fallback)
            plan = blank(graph, self._params, self._options)
            model = lowered(graph, plan)
            image = self._alike(plan, model) if planned_before else None
            begins = image is None
            if image is None:
                self._last = planned(plan, model, self._desk)
                image = emit_lowered(self._last.plan.without_orders(), model, self._desk)
        except CompileError as error:
            raise _at(self._dimension, length, error) from error
        image.weights = self._weights.setdefault(image.weights, image.weights)
        return image, begins

    def _alike(self, plan: Plan, model: LoweredModel) -> Image | None:
        """Return the image of ``model``, compiled as the last one that has a plan of its own; None if that does not do,
        or would take longer. ``plan``: one in which all is free."""
        if self._last is None:
            return None
        for free_tiles in (True, False):
            try:
                mine = retarget(self._last, plan, model, free_tiles=free_tiles)
                return emit_lowered(mine, model, self._desk, self._last.placement.constants)
            except OtherJobsError:
                return None
            except CompileError:
                continue
        return None
