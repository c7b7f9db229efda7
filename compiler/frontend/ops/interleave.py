"""Images whose pixels come from several images in turn: what sub-pixel convolutions compute, put together.

The columns of a row are channels side by side, ``(N, H, W, columns * C)``, and rows of such pixels follow each other as
columns of one wide image, ``(N, H, rows * W, columns * C)``: in memory that is the image ``(N, rows * H, columns * W,
C)``. So both are concatenations, whose parts the convolutions write where they belong.
"""

from collections.abc import Sequence

import numpy as np
import onnx

from compiler.frontend.draft import Draft
from compiler.frontend.source import Signature
from compiler.frontend.values import Quant, Quantisation, Shape, TensorLayout
from compiler.ir import Concat, Slice, Tensor


def inner(draft: Draft, label: str, shape: Shape, params: Quantisation) -> str:
    """Return a tensor in memory that ONNX does not have."""
    name = draft.unique(label)
    draft.graph.tensors[name] = Tensor(name, shape, params.dtype, float(params.scale), params.zero_point)
    return name


def joined(draft: Draft, node: str, parts: Sequence[str], axis: int) -> str:
    """Return IR tensors side by side along physical ``axis``; one as it is."""
    if len(parts) == 1:
        return parts[0]
    shape = list(draft.graph.tensors[parts[0]].shape)
    shape[axis] = sum(draft.graph.tensors[part].shape[axis] for part in parts)
    made = inner(draft, f"{node}:joined", tuple(shape), draft.quantisation(parts[0]))
    draft.add(Concat(node, list(parts), made, axis=axis % len(shape)))
    return made


def interleaved(
    draft: Draft, node: str, rows: Sequence[str], columns: int, target: Quantisation, name: str, shape: Shape
) -> Quant:  # fmt: skip
    """Return the ONNX tensor ``name`` of ``shape``, (N, C, H, W) or (N, C, L), whose row ``i`` is row ``i //
    len(rows)`` of image ``rows[i % len(rows)]``. Those hold ``columns`` neighbouring pixels side by side in each of
    theirs. What the images have beyond ``shape`` is left out."""
    image = TensorLayout.image(shape)
    wide = joined(draft, node, rows, -2)
    n, height, width, channels = draft.graph.tensors[rows[0]].nhwc
    size = (n, height * len(rows), width * columns, channels // columns)
    full: Shape = size if len(shape) == 4 else (size[0], *size[2:])
    whole = draft.reshaped(wide, full)
    for axis, extent in enumerate(image.physical):
        held = draft.graph.tensors[whole]
        if held.shape[axis] > extent:
            cut = inner(draft, f"{node}:cut", (*held.shape[:axis], extent, *held.shape[axis + 1 :]), target)
            draft.add(Slice(node, [whole], cut, axis=axis, first=0))
            whole = cut
    return as_onnx(draft, whole, name, shape, image)


def as_onnx(draft: Draft, tensor: str, name: str, shape: Shape, layout: TensorLayout) -> Quant:
    """Return IR tensor ``tensor``, which lies as ``layout`` says, as the ONNX tensor ``name`` of ``shape``."""
    tensor = draft.reshaped(tensor, layout.physical)
    held = draft.graph.tensors[tensor]
    held.onnx_name, held.view, held.perm = name, layout.view, layout.perm
    elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(held.dtype))
    draft.source.signatures.setdefault(name, Signature(elem_type, shape))
    return Quant(tensor, shape, layout, held.dtype)
