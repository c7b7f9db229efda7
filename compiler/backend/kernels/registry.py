"""Which kernel computes which layer.

To add a kernel, write a class with three methods and decorate it::

    @kernel
    class FlipKernel(Kernel[FlipTiles]):
        def match(self, layer, context):            # can this kernel compute the layer?
            return isinstance(layer, FlipLayer)

        def choose(self, layer, context):           # how it is cut: see :mod:`compiler.plan.tiles`
            return FlipTiles(...)

        def emit(self, layer, tiles, context):      # its jobs, in the order in which their engines run them
            return [job, ...]

Name a new file in ``kernels/__init__.py``. The first kernel that matches is taken, in order of registration.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from compiler.backend.layers.layer import Layer
from compiler.backend.layers.region_share import Share
from compiler.backend.memory.budget import Lv2Budget
from compiler.backend.memory.operand import Lv1Area, TensorOperand
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.program.dependencies import Made
from compiler.backend.program.job import JobProgram
from compiler.ir import CompileError
from compiler.plan.tiles import AnyTiles, Tiles
from hw.contract.params import SocParams


@dataclass(frozen=True)
class KernelContext:
    """What a kernel needs to know besides its layer: the hardware, the ``number`` of the layer in the layer table,
    where tensors lie, which bytes of LV2 it may use, and how many cycles an instruction of MAC or VEC should take at
    most where it can be cut (``longest``; 0: any). ``own_loads``: see :class:`JobProgram`. ``starts``: nothing is
    computed before the layer, so its weights come with its body.

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
    region_lv1: Lv1Area | None = None
    made: Made | None = None
    share: Share = Share.ANY

    @property
    def lv1(self) -> Lv1Area:
        """Return the bytes of LV1 for the layer's buffers."""
        return self.region_lv1 or Lv1Area.whole(self.params)

    def operand(self, name: str) -> TensorOperand:
        """Return the place and quantisation of a tensor."""
        tensor = self.placement.tensors[name]
        return TensorOperand(self.placement.view(name), tensor.dtype == "int8", tensor.zero_point)


TilesT = TypeVar("TilesT", bound=Tiles)


class Kernel(ABC, Generic[TilesT]):
    """Is a way to compute layers of one kind."""

    @abstractmethod
    def match(self, layer: Layer, context: KernelContext) -> bool:
        """Whether the kernel can compute ``layer``."""

    @abstractmethod
    def choose(self, layer: Any, context: KernelContext) -> TilesT:
        """Return how ``layer``, which matches, is cut. Raises :class:`CompileError` if memories are too small for
        it."""

    @abstractmethod
    def emit(self, layer: Any, tiles: TilesT, context: KernelContext) -> list[JobProgram]:
        """Return the jobs of ``layer`` in ``tiles``, those of an engine in the order in which it runs them. May be
        empty."""


KERNELS: list[Kernel] = []


def kernel(cls: type[Kernel]) -> type[Kernel]:
    """Register a kernel."""
    KERNELS.append(cls())
    return cls


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
    chosen = found.choose(layer, context) if tiles is None else tiles
    return found.emit(layer, chosen, context), chosen
