"""Tensors that live in LV2 for a part of their lives: DRAM keeps a copy, and readers read that, or load it again.

What leaves and comes back is a tensor of its own each time, with a home and a life of its own. So whatever places,
verifies and emits layers sees nothing new.
"""

from collections.abc import Sequence
from dataclasses import replace

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, HostLayer, Layer, MoveLayer, RefillLayer, StoreLayer, StridedCopy
from compiler.plan.plan import Reload
from compiler.plan.plan_error import PlanError
from compiler.plan.structure import layer_names


def with_reloads(graph: ir.Graph, layers: Sequence[Layer], wanted: Sequence[Reload]) -> list[Layer]:
    """Return ``layers`` with a store behind the maker of each tensor of ``wanted`` that is stored, and a load before
    the first of each of its groups of readers; adds tensors to ``graph``. Raises :class:`PlanError` if a tensor or a
    reader is none."""
    found = list(layers)
    named = dict(zip(layer_names(layers), range(len(found)), strict=True))
    places = list(range(len(found)))  # by place of a layer in ``layers`` its place in ``found``
    for one in wanted:
        maker = next((layer for layer in found if one.tensor in layer.outputs), None)
        if maker is None or isinstance(maker, HostLayer | RefillLayer | StoreLayer):
            raise PlanError(f"no layer makes a tensor {one.tensor!r} that is to be loaded again")
        kept = kept_name(one)
        readers = [name for group in (*one.loads, one.direct) for name in group]
        for name in readers:
            at = named.get(name)
            if at is None or readers.count(name) > 1 or not can_reload(found[places[at]], one.tensor):
                raise PlanError(f"layer {name!r} cannot read {one.tensor!r} again: it must read that tensor, once")
        if not all(one.loads) or not readers:
            raise PlanError(f"nobody reads {one.tensor!r} again")
        for name in one.direct:
            found[places[named[name]]] = _reading(found[places[named[name]]], one.tensor, kept)
        stores = [(found.index(maker) + 1, _store(graph, one.tensor, kept))] if one.stored else []
        added = list[tuple[int, Layer]]()
        for number, group in enumerate(one.loads):
            again = again_name(one, number)
            for name in group:
                found[places[named[name]]] = _reading(found[places[named[name]]], one.tensor, again)
            added.append((min(places[named[name]] for name in group), _load(graph, kept, again)))
        for at, layer in sorted([*added, *stores], key=lambda pair: -pair[0]):  # stores ahead of loads at their place
            found.insert(at, layer)
            places = [place + (place >= at) for place in places]
    return found


def kept_name(one: Reload) -> str:
    """Return the name of what DRAM keeps of the tensor of ``one``."""
    return f"{one.tensor}/kept" if one.stored else one.tensor


def again_name(one: Reload, number: int) -> str:
    """Return the name of the tensor that a group of readers reads."""
    return f"{one.tensor}/again{number}"


def can_reload(layer: Layer, name: str) -> bool:
    """Return whether ``layer`` reads tensor ``name``, and may read a copy of it instead."""
    plain = not isinstance(layer, HostLayer | RefillLayer | StoreLayer) and not layer.numbers
    return plain and layer.inputs.count(name) > 0


def kept_by(layer: Layer) -> str | None:
    """Return the tensor that DRAM keeps, which ``layer`` stores there or loads from there; None if it does neither."""
    if isinstance(layer, RefillLayer):
        return layer.inputs[0]
    return layer.output if isinstance(layer, StoreLayer) else None


def _store(graph: ir.Graph, name: str, kept: str) -> StoreLayer:
    return StoreLayer(ir.Operation(kept, [name], kept), [name], kept, "store", [_copy(graph, name, kept)])


def _load(graph: ir.Graph, kept: str, again: str) -> RefillLayer:
    return RefillLayer(ir.Operation(again, [kept], again), [kept], again, "load", [_copy(graph, kept, again)])


def _copy(graph: ir.Graph, source: str, target: str) -> StridedCopy:
    """Return the copy of all of tensor ``source`` to ``target``, which is added."""
    graph.tensors[target] = tensor = replace(graph.tensors[source], name=target, onnx_name="")
    return StridedCopy(source, 0, [(tensor.size, 1, 1)])


def _reading(layer: Layer, old: str, new: str) -> Layer:
    """``layer`` with ``new`` in the place of its operand ``old``."""
    made = replace(layer, inputs=[new if name == old else name for name in layer.inputs])
    if isinstance(made, ConvLayer) and made.addition and made.addition.other == old:
        made.addition = replace(made.addition, other=new)
    if isinstance(made, MoveLayer):
        made.copies = [replace(copy, src=new if copy.src == old else copy.src) for copy in made.copies]
    return made
