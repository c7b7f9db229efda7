"""All layers of a model as code, each source compiled once, in as many processes as there are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

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
from compiler.backend.objects.workers import Workers, cpus
from compiler.backend.preempt.points import PointLimits
from compiler.ir import CompileError
from compiler.plan.plan import StepPlan, without_order
from hw.contract.params import SocParams

#: Cycles of layers that take longer to compile than other processes take to start: about two seconds.
_MANY_CYCLES = 2_000_000
_MOST_BYTES = 256 << 20  #: of code, under each of its keys, that a desk holds beside that of the model at work
_REGION = 4  #: times as long as its layers would take one by one: they are compiled so, too, and their tasks compared


class Desk:
    """Makes code of layers: it has worker processes, and holds what they have made so far. It is a context manager.

    Every object is filed under two keys: the question, in which tiles and points are free, and the answer, in which
    they are those that were chosen. So to emit what has just been decided compiles nothing.
    """

    def __init__(self, jobs: int | None = None, store: ObjectStore | None = None) -> None:
        """Open a desk with ``jobs`` processes that share the work where there is much of it (None: as many as there are
        CPUs); images do not depend on it. ``store``: where objects are found that were made before, and others kept
        (None: nowhere). Raises :class:`CompileError` for no process at all."""
        if jobs is not None and jobs < 1:
            raise CompileError(f"jobs must be at least 1, not {jobs}")
        self._workers, self._store = Workers(jobs or cpus()), store
        self._objects: dict[str, LayerObject | CompileError] = {}

    def __enter__(self) -> "Desk":
        self._workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)

    def compile(
        self, layers: Sequence[Layer], placement: TensorPlacement, budget: Lv2Budget, params: SocParams,
        limits: PointLimits | None, given: Sequence[StepPlan] | None = None,
    ) -> tuple[list[LayerCode], list[Region]]:  # fmt: skip
        """Return the code of all ``layers``, or else the regions whose members cannot be one; ``given`` is what is
        decided about each already. Raises :class:`CompileError` for the first other layer that has none."""
        codes, refused = self._codes(layers, placement, budget, params, limits, given)
        if limits and given is None and not refused:
            kept = limits.limited(sum(code.cycles for code in codes))
            if kept.spacing != limits.spacing:
                return self._codes(layers, placement, budget, params, kept, None)
        return codes, refused

    def _codes(
        self, layers: Sequence[Layer], placement: TensorPlacement, budget: Lv2Budget, params: SocParams,
        limits: PointLimits | None, given: Sequence[StepPlan] | None,
    ) -> tuple[list[LayerCode], list[Region]]:  # fmt: skip
        start = next((number for number, layer in enumerate(layers) if not isinstance(layer, LoadLayer)), 0)
        sources = {
            number: LayerSource.of(
                layer,
                number,
                placement,
                budget,
                params,
                limits,
                given[number] if given else None,
                starts=number == start,
            )
            for number, layer in enumerate(layers)
            if not isinstance(layer, HostLayer)
        }
        self._compile({source.key: source for source in sources.values()})
        refused = list[Region]()
        for number, source in sources.items():
            made, layer = self._objects[source.key], layers[number]
            if isinstance(made, LayerObject):
                continue
            if isinstance(layer, Region) and given is None:
                refused.append(layer)
                continue
            if given is None:
                context = replace(source.context, number=number, placement=placement)
                layer_program(layer, context)  # fails likewise, and knows names
            raise made
        if refused:
            return [], refused
        codes = [
            self._code(number, layer, sources[number]) if number in sources else LayerCode(number, layer, "", ())
            for number, layer in enumerate(layers)
        ]
        return codes, []

    def _compile(self, sources: Mapping[str, LayerSource]) -> None:
        """Have the objects of ``sources``."""
        self._make_room(sources)
        for key in sources.keys() - self._objects.keys():
            if self._store and (found := self._store.find(key)) is not None:
                answer = self._file(key, sources[key], found)
                if answer is not None:
                    self._store.used(answer)
        cycles = {key: _cycles(sources[key]) for key in sources.keys() - self._objects.keys()}
        if sum(cycles.values()) > _MANY_CYCLES:
            self._workers.start()
        missing = sorted(cycles, key=lambda key: (-cycles[key], key))
        results = self._workers.map(layer_object, [sources[key] for key in missing])
        for key, made in zip(missing, results, strict=True):
            if isinstance(made, Exception) and not isinstance(made, CompileError):
                raise made
            answer = self._file(key, sources[key], made)
            if self._store and isinstance(made, LayerObject):
                self._store.keep(key, made, answer)
        if self._store:
            self._store.prune()

    def _file(self, key: str, source: LayerSource, made: LayerObject | CompileError) -> str | None:
        """File the object of ``source``, which has ``key``; return the key of its answer, if it is a question."""
        self._objects[key] = made
        if not isinstance(made, LayerObject) or source.jobs is not None:
            return None
        answer = source.answered(made.tiles, without_order(body.plan for body in made.bodies))
        self._objects[answer] = made
        return answer

    def _make_room(self, wanted: Collection[str]) -> None:
        """Forget what was filed first, as far as it is too much and not ``wanted``."""
        held = {key: made.size for key, made in self._objects.items() if isinstance(made, LayerObject)}
        total = sum(held.values())
        for key, size in held.items():
            if total <= _MOST_BYTES:
                return
            if key not in wanted:
                total -= size
                del self._objects[key]

    def _code(self, number: int, layer: Layer, source: LayerSource) -> LayerCode:
        made = self._objects[source.key]
        assert isinstance(made, LayerObject)
        jobs = _jobs(number, made, source)
        if jobs is None:
            made = layer_object(source)
            jobs = _jobs(number, made, source)
            assert jobs is not None  # they are its own weights
        return LayerCode(number, layer, made.summary, jobs, made.tiles)


def _jobs(number: int, made: LayerObject, source: LayerSource) -> tuple[JobCode, ...] | None:
    """Return the jobs of layer ``number`` if ``made`` is the object of its ``source``; None if that has other
    weights."""
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
