"""Resize and Upsample. What an output pixel is of the input's pixels, along each axis, is asked of onnxruntime."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from compiler.frontend.draft import Draft, Value, attributes, operator
from compiler.frontend.ops import blends, repeats, slices
from compiler.frontend.problems import Unsupported, first_line
from compiler.frontend.values import Quant, Real
from sim.host import session

Matrix = npt.NDArray[np.float32]  #: (indices before, indices behind): how much of each is in each

_LONGEST = 1 << 12  #: axis to interpolate along: the matrix grows with its square
_MOST = 1 << 24  #: elements of an axis: float32 tells as many indices apart

_ATTRIBUTES = (
    "mode", "coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value",
    "antialias",
)  # fmt: skip


@operator("Resize", "Upsample")
def resize(draft: Draft, node: onnx.NodeProto) -> list[Value]:
    """Return an image of another size: of nearest pixels as copies, by linear interpolation as blends of pixels."""
    given, value = attributes(node), slices.stored_value(draft, node)
    mode = given.get("mode", "nearest")
    if given.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unsupported(f"keep_aspect_ratio_policy {given['keep_aspect_ratio_policy']!r}; state sizes or scales")
    if given.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise Unsupported("tf_crop_and_resize; slice the tensor and resize the result")
    asked = _questions(draft, node, value.shape)
    if mode == "nearest" or all(question.extent == 1 for question in asked.values()):
        indices = {axis: _resized(question, single=True)[0].astype(int).tolist() for axis, question in asked.items()}
        return [_nearest(draft, node, value, indices)]
    if mode != "linear":
        raise Unsupported(f"mode {mode!r}; the accelerator resizes by nearest pixels, and by linear interpolation")
    for axis, question in asked.items():
        if question.extent > _LONGEST:
            raise Unsupported(f"linear interpolation along axis {axis} of {question.extent}, of {_LONGEST} at most")
    matrices = {axis: _resized(question, single=False) for axis, question in asked.items()}
    return [blends.blended(node, draft.real(node.input[0]), matrices)]


def _nearest(
    draft: Draft, node: onnx.NodeProto, value: Real | Quant, indices: dict[int, list[int]]
) -> Real | Quant:  # fmt: skip
    """Return the pixels that ``indices`` name, along one axis after the other."""
    quant = value.quant if isinstance(value, Real) else value
    params, label, factors = draft.quantisation(quant.tensor), node.output[0], [1] * len(quant.shape)
    for axis in list(indices):
        before, behind = quant.shape[axis], len(indices[axis])
        if indices[axis] == [i * before // behind for i in range(behind)] and behind % before == 0:
            factors[axis] = behind // before
            del indices[axis]
    quant = repeats.repeated(draft, label, node.name, quant, factors)  # all axes in one copy
    for axis, found in indices.items():
        quant = repeats.chosen(draft, label, node.name, quant, axis, found)
    quant = slices.named(draft, node, value, quant, params)
    return dataclasses.replace(value, quant=quant) if isinstance(value, Real) else quant


@dataclass(frozen=True)
class _Question:
    """Asks what Resize of an operator set makes of an axis of ``extent`` elements, ``by`` a scale, or a size if
    ``by_size``, with the attributes ``how``."""

    extent: int
    by: float
    by_size: bool
    version: int
    how: tuple[tuple[str, Any], ...]


def _questions(draft: Draft, node: onnx.NodeProto, shape: tuple[int, ...]) -> dict[int, _Question]:
    """Return what is to be asked of each axis that a node changes, of a tensor of ``shape``."""
    given, version = attributes(node), _version(draft)
    place = 1 if node.op_type == "Upsample" or version < 11 else 2
    scales = draft.constant(node, place, "scales") if place < len(node.input) else None
    scales = np.array(given["scales"], np.float32) if "scales" in given else scales
    sizes = draft.constant(node, 3, "sizes")
    axes = [int(axis) % len(shape) for axis in given.get("axes", range(len(shape)))]
    wanted = scales if sizes is None or not sizes.size else sizes
    if wanted is None or wanted.size != len(axes):
        raise Unsupported("neither its scales nor its sizes are given for each axis; state them as constants")
    by_size = wanted is not scales
    how = tuple((name, given[name]) for name in _ATTRIBUTES if name in given)
    if node.op_type == "Upsample" or version < 11:
        how = (("mode", given.get("mode", "nearest")), ("coordinate_transformation_mode", "asymmetric"),
               ("nearest_mode", "floor"))  # fmt: skip
    found = {}
    for axis, by in zip(axes, wanted.reshape(-1).tolist(), strict=True):
        same = by == (shape[axis] if by_size else 1)
        if not same:
            size = by if by_size else shape[axis] * by
            if not 1 <= size <= _MOST:
                raise Unsupported(f"axis {axis} of {shape[axis]} elements by {by:g}: 1 to {_MOST:,} may be left")
            found[axis] = _Question(shape[axis], by, by_size, max(version, 13), how)
    return found


def _version(draft: Draft) -> int:
    """Return the model's operator set."""
    return next(entry.version for entry in draft.source.model.opset_import if entry.domain in ("", "ai.onnx"))


@functools.lru_cache(maxsize=64)
def _resized(asked: _Question, *, single: bool) -> Matrix:
    """Return what onnxruntime makes of the unit vectors of an axis, or with ``single`` of its indices, in one row."""
    names = ["x", "", "", "by"] if asked.by_size else ["x", "", "by"]
    rows = np.arange(asked.extent, dtype=np.float32)[None] if single else np.eye(asked.extent, dtype=np.float32)
    lead = len(rows) if asked.by_size else 1
    wanted = np.array([lead, asked.by], np.int64 if asked.by_size else np.float32)
    graph = helper.make_graph(
        [helper.make_node("Resize", names, ["y"], **dict(asked.how))], "axis",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, rows.shape)],
        [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(wanted, "by")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", asked.version)], ir_version=8)
    try:
        return session(model).run(None, {"x": rows})[0]
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise Unsupported(f"onnxruntime cannot evaluate it: {first_line(error)}") from None
