"""PRelu: of one slope a table, of one for each channel of an image slopes of its own."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from compiler.frontend.draft import Draft, Pending, Value, operator
from compiler.frontend.ops import pointwise
from compiler.frontend.problems import Unsupported
from compiler.frontend.values import Quant, Quantisation, Real, TensorLayout
from compiler.ir import Slope


@dataclass(frozen=True, kw_only=True)
class Sloped(Pending):
    """Image ``x``, with its values below 0 times ``slopes``, one for each channel."""

    x: Real
    slopes: npt.NDArray[np.float32]

    def emit(self, draft: Draft, target: Quantisation, name: str) -> Quant:
        """Return one ``ir.Slope``."""
        source, shape = draft.image(self.x.quant), self.base_shape
        above = np.float32(self.x.quantisation.scale / target.scale)
        lo, hi = target.clamp(self.low, self.high)
        made = draft.new_tensor(name, shape, TensorLayout.image(shape), target)
        below = (self.slopes * above).astype(np.float32)
        draft.add(
            Slope(
                self.node, [source], made.tensor, above=above, below=below, zero_point=target.zero_point, lo=lo, hi=hi
            )
        )
        return made


@operator("PRelu")
def prelu(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return a tensor with its values below 0 times constant slopes."""
    slopes = draft.constant(node, 1, "slopes")
    assert slopes is not None
    if slopes.size == 1:
        return pointwise.extended(draft, node)
    x = draft.real(node.input[0])
    rank = len(x.shape)
    full = (1,) * (rank - slopes.ndim) + slopes.shape
    if rank not in (3, 4) or full != (1, x.shape[1], *(1,) * (rank - 2)):
        raise Unsupported(f"slopes of shape {slopes.shape} for {x.shape}; there may be one, or one for each channel")
    return [Sloped(shape=x.shape, node=node.name, roots=(x.quant.tensor,), x=x, slopes=slopes.reshape(-1))]
