"""Inputs of a model that several convolutions read come to LV2 once.

A tensor in DRAM is loaded by each layer that reads it, and by each engine where engines share the channels of the
result. Where that keeps DRAM busy for longer than the products take, the loads hold up weights, and the first layers
wait. A layer of its own that loads the input ends before they begin, which costs more where DRAM has time.
"""

from collections.abc import Sequence
from dataclasses import replace

from compiler import ir
from compiler.backend.layers.layer import ConvLayer, EltwiseLayer, Layer, LoadLayer, StridedCopy
from hw.contract.params import SocParams
from sim.cost import moved

_ROOM = 16  #: part of LV2 that an input takes at most
_SLACK = 2  #: times as long as the loads the products may take: loads wait for each other, too


def load_inputs(
    graph: ir.Graph, layers: Sequence[Layer], params: SocParams, engines: int, lv2_bytes: int
) -> list[Layer]:  # fmt: skip
    """``layers`` with a load before the first reader of each input for which it pays; adds a tensor to ``graph`` for
    each."""
    found = list(layers)
    for port in graph.inputs:
        roots = graph.roots()
        readers = [layer for layer in found if roots[port.tensor] in {roots[name] for name in layer.inputs}]
        if not _pays(graph, port.tensor, readers, params, engines, lv2_bytes):
            continue
        name = f"{port.tensor}/on_chip"
        graph.tensors[name] = tensor = replace(graph.tensors[port.tensor], name=name, onnx_name="")
        copy = StridedCopy(port.tensor, 0, [(tensor.size, 1, 1)])
        load = LoadLayer(ir.Operation(name, [port.tensor], name), [port.tensor], name, "load", [copy])
        first = found.index(readers[0])
        found = [_reading(layer, port.tensor, name) if layer in readers else layer for layer in found]
        found.insert(first, load)
    return found


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
