"""What kernels are told about tensors, and about the LV2 bytes they may use in passing."""

from dataclasses import dataclass

from compiler.plan.memory.tensor_view import TensorView
from hw.contract.params import SocParams


@dataclass(frozen=True)
class StagingArea:
    """Sets LV2 bytes of segment 6 aside for tiles on their way from or to DRAM."""

    base: int
    size: int


@dataclass(frozen=True)
class Lv1Area:
    """LV1 bytes that the buffers of a layer may take: all, or a part beside another layer's."""

    base: int
    size: int

    @classmethod
    def whole(cls, params: SocParams) -> "Lv1Area":
        """Return all of LV1."""
        return cls(0, params.lv1_bytes)


@dataclass(frozen=True, eq=False)
class KeptInput:
    """``size`` bytes of dense tensor ``source``, from byte ``first`` on, that stay in LV2 at ``base`` once loaded."""

    source: TensorView
    base: int
    first: int
    size: int


@dataclass(frozen=True)
class TensorOperand:
    """A tensor as kernels see it: where it is and what its bytes mean."""

    view: TensorView
    signed: bool
    zero_point: int

    @property
    def zero_byte(self) -> int:
        """Return the zero point as a raw byte."""
        return self.zero_point & 0xFF
