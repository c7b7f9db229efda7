"""Masks of scores in a float model, before it is quantised: minus infinity, or -1e9, would take all steps of 8 bits for
itself. A score that does not count becomes low enough that its exponential is nothing beside those that do."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from compiler.quantise.written_nodes import ModelValues, with_nodes
from sim.host import session

_MASKED = -1e4  #: from here on downwards a constant masks
_STORES = "QuantizeLinear"
_NOTHING = 512  #: the exponentials of all masked scores of a row together are less than one in so many of its largest


@dataclass(frozen=True)
class _Mask:
    """Scores ``scores`` of which those ``kept`` count, (..., queries, keys), as ``node`` gives them to a softmax."""

    node: onnx.NodeProto
    scores: str
    kept: npt.NDArray[np.bool_]
    added: npt.NDArray[np.float32] | None = None  #: to those that count


def fitting_masks(model: onnx.ModelProto, feeds: Iterable[Mapping[str, npt.NDArray]]) -> onnx.ModelProto:
    """Return a model in which constant masks in front of softmax, Where or Add, are Where with a value that is fit for
    the scores that the model has on ``feeds``. Where a mask reads a quotient by a constant, that is a product: the
    quantiser stores no quotients, and no Where that reads something that it does not store."""
    masks = _masks(model)
    if not masks:
        return model
    values = _values(model, masks, feeds)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    nodes, by_result = list[onnx.NodeProto](), {mask.node.output[0]: mask for mask in masks}
    known, scores = ModelValues.of(model), {mask.scores for mask in masks}
    for node in made.graph.node:
        if node.op_type == "Div" and node.output[0] in scores and node.input[1] in known.constants:
            inverse = f"{node.name or node.output[0]}/inverse"
            made.graph.initializer.append(numpy_helper.from_array(1 / known.constants[node.input[1]], inverse))
            node.op_type, node.input[1] = "Mul", inverse
        mask = by_result.get(node.output[0])
        if mask is None:
            nodes.append(node)
            continue
        label, masked = node.name or node.output[0], mask.scores
        parts = {"kept": mask.kept, "masked": np.float32(values[node.output[0]])}
        if mask.added is not None:
            parts["added"], masked = mask.added, f"{label}/sum"
            nodes.append(helper.make_node("Add", [mask.scores, f"{label}/added"], [masked], f"{label}/Add"))
        nodes.append(
            helper.make_node("Where", [f"{label}/kept", masked, f"{label}/masked"], list(node.output), f"{label}/Where")
        )
        made.graph.initializer.extend(
            numpy_helper.from_array(np.asarray(value), f"{label}/{name}") for name, value in parts.items()
        )
    return with_nodes(made, nodes)


def stored_alike(model: onnx.ModelProto) -> None:
    """Let scores of a quantised model that nothing but a Where with a constant condition reads be stored in the steps
    of its result, which hold all that counts: so they are rounded once."""
    makers = {name: node for node in model.graph.node for name in node.output}
    readers = dict[str, list[onnx.NodeProto]]()
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    constants = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        stored = readers.get(node.output[0], []) if node.op_type == "Where" else []
        if node.op_type != "Where" or node.input[0] not in constants or [one.op_type for one in stored] != [_STORES]:
            continue
        for name in node.input[1:]:
            back = makers.get(name)
            kept = makers.get(back.input[0]) if back is not None and back.op_type == "DequantizeLinear" else None
            if back is None or kept is None or kept.op_type != _STORES:
                continue
            if len(readers[name]) == 1 and len(readers[kept.output[0]]) == 1:
                kept.input[1:] = back.input[1:] = stored[0].input[1:]


def _masks(model: onnx.ModelProto) -> list[_Mask]:
    known, found = ModelValues.of(model), list[_Mask]()
    softened = {node.input[0] for node in model.graph.node if node.op_type == "Softmax" and _over_keys(node, known)}
    for node in model.graph.node:
        if node.output[0] not in softened:
            continue
        given = [known.constants.get(name) for name in node.input]
        mask = None
        if node.op_type == "Where" and given[0] is not None:
            mask = _chosen(node, given)
        elif node.op_type == "Add" and sum(value is None for value in given) == 1:
            mask = _summed(node, given)
        if mask is not None and mask.kept.ndim and mask.kept.any(axis=-1).all():
            found.append(mask)
    return found


def _over_keys(node: onnx.NodeProto, known: ModelValues) -> bool:
    """Return whether a softmax is over the last axis."""
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), -1)
    shape = known.shapes.get(node.input[0])
    return axis == -1 or (shape is not None and axis == len(shape) - 1)


def _chosen(node: onnx.NodeProto, given: list[npt.NDArray | None]) -> _Mask | None:
    """Return the mask that Where ``node`` is, one constant of which is very low; None if it is none."""
    (index,) = [at for at in (1, 2) if given[at] is not None] or [0]
    low, condition = given[index], given[0]
    if index == 0 or low is None or condition is None or (low > _MASKED).any():
        return None
    return _Mask(node, node.input[3 - index], ~condition if index == 1 else condition)


def _summed(node: onnx.NodeProto, given: list[npt.NDArray | None]) -> _Mask | None:
    """Return the mask that Add ``node`` is, some elements of whose constant are very low; None if it is none."""
    (index,) = [at for at, value in enumerate(given) if value is not None]
    added = given[index]
    if added is None or added.ndim == 0 or not (added <= _MASKED).any():
        return None
    kept = added > _MASKED
    rest = np.where(kept, added, 0).astype(np.float32)
    return _Mask(node, node.input[1 - index], kept, rest if rest.any() else None)


def _values(
    model: onnx.ModelProto, masks: Sequence[_Mask], feeds: Iterable[Mapping[str, npt.NDArray]]
) -> dict[str, float]:
    """Return by the result of each mask what a score becomes that does not count: no higher than any that does, and
    so far below the lowest maximum of a row that all of them are nothing."""
    shown, low = onnx.ModelProto(), dict[str, float]()
    shown.CopyFrom(model)
    inputs, outputs = ({value.name for value in values} for values in (model.graph.input, model.graph.output))
    names = [name for name in dict.fromkeys(mask.scores for mask in masks) if name not in inputs]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in outputs)
    run = session(shown)
    for feed in feeds:
        found = {**feed, **dict(zip(names, run.run(names, dict(feed)) if names else (), strict=True))}
        for mask in masks:
            scores = found[mask.scores] if mask.added is None else found[mask.scores] + mask.added
            kept, name = np.broadcast_to(mask.kept, scores.shape), mask.node.output[0]
            largest = np.where(kept, scores, -np.inf).max(axis=-1).min()
            lowest = np.where(kept, scores, np.inf).min()
            fit = min(float(lowest), float(largest) - math.log(_NOTHING * scores.shape[-1]))
            low[name] = min(low.get(name, np.inf), fit)
    return low
