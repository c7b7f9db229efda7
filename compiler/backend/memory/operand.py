"""What kernels are told about tensors, and about the LV2 bytes they may use in passing."""

from dataclasses import dataclass

from compiler.backend.memory.tensor_view import TensorView


@dataclass(frozen=True)
class StagingArea:
    """LV2 bytes of segment 6 set aside for tiles on their way from or to DRAM."""

    base: int
    size: int


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
        """The zero point as a raw byte."""
        return self.zero_point & 0xFF
