"""Inputs of a model that several convolutions read come to LV2 once.

A tensor in DRAM is loaded by each layer that reads it, and by each engine where engines share the channels of the
result. Where that keeps DRAM busy for longer than the products take, the loads hold up weights, and the first layers
wait. A layer of its own that loads the input ends before they begin, which costs more where DRAM has time.
"""

from collections.abc import Sequence
from dataclasses import replace

from compiler import ir
from compiler.plan.layers.layer import ConvLayer, EltwiseLayer, Layer, LoadLayer, StridedCopy
from compiler.plan.plan import InputLoad
from compiler.plan.plan_error import PlanError
from hw.contract.params import SocParams
from sim.cost import moved

_ROOM = 16  #: part of LV2 that an input takes at most
_SLACK = 2  #: times as long as the loads the products may take: loads wait for each other, too


def inputs_to_load(
    graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int, lv2_bytes: int
) -> list[InputLoad]:  # fmt: skip
    """Return the inputs for which a load before their first reader pays."""
    found = []
    for name in (port.tensor for port in graph.inputs):
        if _pays(graph, name, _readers(graph, layers, name), params, engines, lv2_bytes):
            found.append(InputLoad(name))
    return found


def with_loads(graph: ir.Graph, layers: Sequence[Layer], wanted: Sequence[InputLoad]) -> list[Layer]:
    """Return ``layers`` with a load before the first reader of each input; adds a tensor to ``graph`` for each. Raises
    :class:`PlanError` if nothing reads one."""
    found = list(layers)
    for one in wanted:
        readers = _readers(graph, found, one.input) if one.input in graph.tensors else []
        if not readers:
            raise PlanError(f"nothing reads an input {one.input!r} that is to be loaded")
        name = f"{one.input}/on_chip"
        graph.tensors[name] = tensor = replace(graph.tensors[one.input], name=name, onnx_name="")
        copy = StridedCopy(one.input, 0, [(tensor.size, 1, 1)])
        load = LoadLayer(ir.Operation(name, [one.input], name), [one.input], name, "load", [copy])
        first = found.index(readers[0])
        found = [_reading(layer, one.input, name) if layer in readers else layer for layer in found]
        found.insert(first, load)
    return found


def _readers(graph: ir.Graph, layers: Sequence[Layer], name: str) -> list[Layer]:
    roots = graph.roots()
    return [layer for layer in layers if roots[name] in {roots[read] for read in layer.inputs}]


def _pays(
    graph: ir.Graph, name: str, readers: Sequence[Layer], params: SocParams, engines: int, lv2_bytes: int
) -> bool:  # fmt: skip
    convs = [layer for layer in readers if isinstance(layer, ConvLayer) and not layer.depthwise]
    simple = all(isinstance(layer, ConvLayer | EltwiseLayer) and name in layer.inputs for layer in readers)
    size = graph.tensors[name].size
    if len(convs) < 2 or not simple or size > lv2_bytes // _ROOM:
        return False
    loaded = sum(layer.weights.size for layer in convs) + size * engines * len(convs)
    return moved(_SLACK * loaded, params) > sum(layer.macs(graph) for layer in convs) / params.macs


def _reading(layer: Layer, old: str, new: str) -> Layer:
    """``layer`` with ``new`` in the place of its operand ``old``."""
    made = replace(layer, inputs=[new if name == old else name for name in layer.inputs])
    if isinstance(made, ConvLayer) and made.addition and made.addition.other == old:
        made.addition = replace(made.addition, other=new)
    return made
