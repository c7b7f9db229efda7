"""All layers of a model as code, each source compiled once, in as many processes as there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from compiler.backend.kernels.conv_data import ConvData
from compiler.backend.kernels.layer_program import layer_program
from compiler.backend.layers.layer import ConvLayer, HostLayer, Layer, LoadLayer
from compiler.backend.layers.region import Region, members_of
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.objects.layer_code import JobCode, LayerCode
from compiler.backend.objects.layer_object import LayerObject, layer_object, weights_of
from compiler.backend.objects.layer_source import LayerSource
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.objects.workers import Workers
from compiler.backend.preempt.points import PointLimits
from compiler.ir import CompileError
from compiler.plan.plan import StepPlan
from hw.contract.params import SocParams

#: Cycles of layers that take longer to compile than other processes take to start: about two seconds.
_MANY_CYCLES = 2_000_000
_REGION = 4  #: times as long as its layers would take one by one: they are compiled so, too, and their tasks compared


class NoRegions(Exception):
    """The members of each of ``regions`` cannot be one; says why."""

    def __init__(self, why: Mapping[Region, Exception]) -> None:
        super().__init__("; ".join(f"{region.name}: {error}" for region, error in why.items()))
        self.regions = list(why)


@dataclass
class LayerCompiler:
    """Compiles layers with ``workers``, and knows what it has compiled: ``objects``, or why there is none, by key.
    ``store``: where objects are kept for the next time (None: nowhere)."""

    params: SocParams
    workers: Workers
    store: ObjectStore | None = None
    objects: dict[str, LayerObject | CompileError] = field(default_factory=dict)

    def compile(
        self, layers: Sequence[Layer], placement: TensorPlacement, budget: Lv2Budget, limits: PointLimits | None,
        given: Sequence[StepPlan] | None = None,
    ) -> list[LayerCode]:  # fmt: skip
        """The code of all ``layers``; ``given``: what is decided about each already. Raises
        :class:`NoRegions` if some regions have none, and :class:`CompileError` for the first of other layers."""
        codes = self._codes(layers, placement, budget, limits, given)
        if limits and given is None:
            kept = limits.limited(sum(code.cycles for code in codes))
            if kept.spacing != limits.spacing:
                codes = self._codes(layers, placement, budget, kept, None)
        return codes

    def _codes(
        self, layers: Sequence[Layer], placement: TensorPlacement, budget: Lv2Budget, limits: PointLimits | None,
        given: Sequence[StepPlan] | None,
    ) -> list[LayerCode]:  # fmt: skip
        start = next((number for number, layer in enumerate(layers) if not isinstance(layer, LoadLayer)), 0)
        sources = {
            number: LayerSource.of(
                layer,
                number,
                placement,
                budget,
                self.params,
                limits,
                given[number] if given else None,
                starts=number == start,
            )
            for number, layer in enumerate(layers)
            if not isinstance(layer, HostLayer)
        }
        self._compile({source.key: source for source in sources.values()})
        refused: dict[Region, Exception] = {}
        for number, source in sources.items():
            error, layer = self.objects[source.key], layers[number]
            if isinstance(error, LayerObject):
                continue
            if given is not None:
                raise error
            if not isinstance(layer, Region):
                context = replace(source.context, number=number, placement=placement)
                layer_program(layer, context)  # fails likewise, and knows names
                raise error
            refused[layer] = error
        if refused:
            raise NoRegions(refused)
        return [
            self._code(number, layer, sources[number]) if number in sources else LayerCode(number, layer, "", ())
            for number, layer in enumerate(layers)
        ]

    def _compile(self, sources: Mapping[str, LayerSource]) -> None:
        """Have the objects of ``sources``."""
        for key in sources.keys() - self.objects.keys():
            if self.store and (found := self.store.find(key)) is not None:
                self.objects[key] = found
        cycles = {key: _cycles(sources[key]) for key in sources.keys() - self.objects.keys()}
        if sum(cycles.values()) > _MANY_CYCLES:
            self.workers.start()
        missing = sorted(cycles, key=lambda key: (-cycles[key], key))
        for key, made in zip(missing, self.workers.map(layer_object, [sources[key] for key in missing]), strict=True):
            if isinstance(made, Exception) and not isinstance(made, CompileError):
                raise made
            self.objects[key] = made
            if self.store and isinstance(made, LayerObject):
                self.store.keep(key, made)
        if self.store:
            self.store.prune()

    def _code(self, number: int, layer: Layer, source: LayerSource) -> LayerCode:
        made = self.objects[source.key]
        assert isinstance(made, LayerObject)
        jobs = _jobs(number, made, source)
        if jobs is None:
            made = layer_object(source)
            jobs = _jobs(number, made, source)
            assert jobs is not None  # they are its own weights
        return LayerCode(number, layer, made.summary, jobs, made.tiles)


def _jobs(number: int, made: LayerObject, source: LayerSource) -> tuple[JobCode, ...] | None:
    """The jobs of layer ``number`` if ``made`` is the object of its ``source``; None if that has other weights."""
    known: dict[ConvData, bytes] = {}
    jobs = []
    for body in made.bodies:
        weights = weights_of(body, source, known)
        if weights is None:
            return None
        jobs.append(JobCode(number, body, *weights))
    return tuple(jobs)


def _cycles(source: LayerSource) -> float:
    """About how long the device would compute: so much there is to compile, and what takes long should come first."""
    made, params = source.placement.tensors, source.params
    return (_REGION if isinstance(source.layer, Region) else 1) * sum(
        made[member.output].size * member.weights[0].size / params.macs
        if isinstance(member, ConvLayer)
        else made[member.output].size / params.vec_lanes
        for member in members_of(source.layer)
    )
