"""Which kernel computes which layer.

To add a kernel, write a class and decorate it::

    @kernel
    class FlipKernel(Kernel[FlipTiles]):
        layers = FlipLayer                              # what it computes; see also :meth:`Kernel.match`

        def choose(self, layer, context):               # how it is cut: see :mod:`compiler.plan.tiles`
            return FlipTiles(...)

        def job(self, layer, tiles, context, engine):   # what an engine does; or :meth:`Kernel.emit`: the jobs of all
            return JobProgram(...)

Name a new file in ``kernels/__init__.py``. The first kernel that matches is taken, in order of registration.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar, get_args

from compiler.emission.program import JobProgram
from compiler.emission.program.dependencies import Made
from compiler.emission.program.task import ParameterUse
from compiler.ir import CompileError
from compiler.plan.layers import HostLayer, Layer, Share
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.operand import Lv1Area, TensorOperand
from compiler.plan.memory.tensor_placement import TensorPlacement
from compiler.plan.memory.tensor_view import PiecesView
from compiler.plan.plan_error import PlanError
from compiler.plan.tiles import AnyTiles, Tiles, Uncut
from hw.contract.params import SocParams
from hw.image import ParameterInfo


@dataclass(frozen=True)
class KernelContext:
    """What a kernel needs to know besides its layer: the hardware, the ``number`` of the layer in the layer table,
    where tensors lie, which bytes of LV2 it may use, and how many cycles an instruction of MAC or VEC should take at
    most where it can be cut (``longest``; 0: any). ``own_loads``: see :class:`JobProgram`. ``starts``: nothing is
    computed before the layer, so its weights come with its body. ``ends``: no layer comes behind it.
    ``loads_longest``: the model loads weights for longer than its arrays multiply.

    In a region also ``region_lv1``, the part of LV1 that the layer may use, ``made``: what the layers before it have
    made, and how the engines ``share`` the layer.
    """

    params: SocParams
    number: int
    placement: TensorPlacement
    budget: Lv2Budget
    longest: int = 0
    own_loads: bool = False
    starts: bool = False
    ends: bool = False
    loads_longest: bool = False
    region_lv1: Lv1Area | None = None
    made: Made | None = None
    share: Share = Share.ANY

    @property
    def lv1(self) -> Lv1Area:
        """Return the bytes of LV1 for the layer's buffers."""
        return self.region_lv1 or Lv1Area.whole(self.params)

    def more(self, field: str, given: ParameterInfo | None) -> tuple[ParameterUse, ...]:
        """Return what says that jobs add the parameter ``given``, if there is one, to ``field``."""
        if given is None:
            return ()
        return (ParameterUse(field, self.placement.parameters.index(given), given.value(given.high)),)

    def operand(self, name: str) -> TensorOperand:
        """Return the place and quantisation of a tensor."""
        tensor = self.placement.tensors[name]
        return TensorOperand(self.placement.view(name), tensor.dtype == "int8", tensor.zero_point)

    def first(self, layer: Layer) -> TensorOperand:
        """Return the first operand of ``layer``: its first input, or the pieces of one that nobody made."""
        pieces = [self.operand(name) for name in layer.inputs[: layer.pieces]]
        return replace(pieces[0], view=PiecesView.of([one.view for one in pieces])) if len(pieces) > 1 else pieces[0]


TilesT = TypeVar("TilesT", bound=Tiles)


class Kernel(ABC, Generic[TilesT]):
    """Is a way to compute layers of the class ``layers``."""

    layers: ClassVar[type[Layer]]

    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Whether the kernel can compute ``layer``."""
        return isinstance(layer, self.layers)

    @abstractmethod
    def choose(self, layer: Any, context: KernelContext) -> TilesT:
        """Return how ``layer``, which matches, is cut. Raises :class:`CompileError` if memories are too small for
        it."""

    def given(self, layer: Any, tiles: AnyTiles, context: KernelContext) -> TilesT:
        """Return ``tiles`` that a plan gives for ``layer``, which matches. Raises :class:`PlanError` if they are of
        another kind, or no tiles at all, or do not fit in memory."""
        (kind,) = get_args(type(self).__orig_bases__[0])  # type: ignore[attr-defined]
        if not isinstance(tiles, kind):
            raise PlanError(f"tiles are of kind {tiles.kind!r}, and must be {kind.kind!r} for a {layer.kind}")
        for name, value in _numbers("tiles", tiles):
            if value < 1:
                raise PlanError(f"{name} is {value}, and must be 1 at least")
        found: TilesT = tiles
        return found

    def emit(self, layer: Any, tiles: TilesT, context: KernelContext) -> list[JobProgram]:
        """Return the jobs of ``layer`` in ``tiles``, those of an engine in the order in which it runs them: a job for
        each engine with a share, unless a kernel says otherwise. May be empty."""
        jobs = (self.job(layer, tiles, context, engine) for engine in range(context.budget.engines))
        return [job for job in jobs if job]

    def job(self, layer: Any, tiles: TilesT, context: KernelContext, engine: int) -> JobProgram | None:
        """Return the job of an engine; None if it has no share."""
        raise NotImplementedError


def _numbers(name: str, value: Any) -> Iterator[tuple[str, int]]:
    """Yield all whole numbers in ``value``, each with where it is."""
    if is_dataclass(value):
        for field in fields(value):
            if (one := getattr(value, field.name)) != field.default or one != 0:  # a 0 may stand for what follows
                yield from _numbers(f"{name}.{field.name}", one)
    elif isinstance(value, tuple):
        for at, one in enumerate(value):
            yield from _numbers(f"{name}[{at}]", one)
    elif type(value) is int:
        yield name, value


KERNELS: list[Kernel] = []


def kernel(cls: type[Kernel]) -> type[Kernel]:
    """Register a kernel."""
    KERNELS.append(cls())
    return cls


@kernel
class HostKernel(Kernel[Uncut]):
    """Host layers, which are steps of the image between its jobs: no job."""

    layers = HostLayer

    def choose(self, layer: HostLayer, context: KernelContext) -> Uncut:
        """Nothing to cut."""
        return Uncut()

    def job(self, layer: HostLayer, tiles: Uncut, context: KernelContext, engine: int) -> None:
        """No job."""


def kernel_for(layer: Layer, context: KernelContext) -> Kernel:
    """Return the kernel that computes ``layer``; raises :class:`CompileError` if there is none."""
    for candidate in KERNELS:
        if candidate.match(layer, context):
            return candidate
    raise CompileError(f"operator {layer.name!r}: no kernel computes a {layer.kind}; mark it for the host")


def emitted(layer: Layer, tiles: AnyTiles | None, context: KernelContext) -> tuple[list[JobProgram], AnyTiles]:
    """Return the jobs of ``layer``, and its tiles, which are chosen unless they are given. Raises
    :class:`CompileError`."""
    found = kernel_for(layer, context)
    chosen = found.choose(layer, context) if tiles is None else found.given(layer, tiles, context)
    return found.emit(layer, chosen, context), chosen
