"""Where the elements of an ONNX tensor lie in memory.

A layout says that memory holds ``transpose(onnx_value.reshape(view), perm)``, dense. Images are channels last, so an
NCHW tensor of rank 4 has perm (0, 2, 3, 1). Reshapes and transposes of ONNX only change the layout; data moves when
an operator needs another one.
"""

import math
from dataclasses import dataclass

Shape = tuple[int, ...]
NHWC = (0, 2, 3, 1)


def default_perm(rank: int) -> Shape:
    """Return the layout operators prefer: channels last for images, the ONNX order otherwise."""
    return NHWC if rank == 4 else tuple(range(rank))


@dataclass(frozen=True)
class TensorLayout:
    """See the module's text; ``view`` and the ONNX shape hold the same elements in the same order."""

    view: Shape
    perm: Shape

    @classmethod
    def plain(cls, shape: Shape) -> "TensorLayout":
        """Return the layout of memory in the order of ONNX."""
        return cls(shape, tuple(range(len(shape))))

    @classmethod
    def default(cls, shape: Shape) -> "TensorLayout":
        """Return the layout that operators prefer for this rank."""
        return cls(shape, default_perm(len(shape)))

    @property
    def physical(self) -> Shape:
        """Return the shape in memory, where a scalar is a vector of one element."""
        return tuple(self.view[axis] for axis in self.perm) or (1,)

    def canonical(self) -> tuple[Shape, Shape]:
        """Equal for two layouts of the same size exactly if they order the bytes alike: extents of 1 are dropped and
        axes merged that stay neighbours."""
        axes = [axis for axis, size in enumerate(self.view) if size != 1]
        runs: list[list[int]] = []
        for axis in (a for a in self.perm if self.view[a] != 1):
            if runs and axes.index(axis) == axes.index(runs[-1][-1]) + 1:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        onnx_order = sorted(runs)
        sizes = tuple(math.prod(self.view[a] for a in run) for run in onnx_order)
        return sizes, tuple(onnx_order.index(run) for run in runs)

    def same_order(self, other: "TensorLayout") -> bool:
        """True if both put every element at the same place."""
        return self.canonical() == other.canonical()

    def transposed(self, axes: Shape) -> "TensorLayout":
        """Return the layout of ``transpose(x, axes)`` in the same memory (``view`` must be x's shape)."""
        return TensorLayout(tuple(self.view[a] for a in axes), tuple(axes.index(p) for p in self.perm))
