"""Look-ups in constant tables, made to read what is stored: 8 bits.

A quantiser writes ``Gather(DequantizeLinear(table), ids)``, which makes all of the table real numbers for the few rows
that are taken. DequantizeLinear with one scale may as well stand behind: every element is the same number then.
"""

import onnx

from compiler.frontend.source import free_name
from compiler.ir.graph import EIGHT_BIT

LOOKUPS = ("Gather", "GatherND", "GatherElements")
_TYPES = tuple(onnx.TensorProto.DataType.Value(name.upper()) for name in EIGHT_BIT)


def narrow_lookups(proto: onnx.ModelProto) -> None:
    """Put DequantizeLinear of an 8-bit table with one scale behind each node that takes elements of it by indices which
    depend on an input of the model."""
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    computed = {value.name for value in proto.graph.input} - constants.keys()
    tables: dict[str, onnx.NodeProto] = {}
    taken = {name for node in proto.graph.node for name in (node.name, *node.input, *node.output)}
    nodes = []
    for node in proto.graph.node:
        if node.op_type == "DequantizeLinear" and _one_scale(node, constants):
            tables[node.output[0]] = node
        if not computed.isdisjoint(node.input):
            computed.update(node.output)
        nodes.append(node)
        if node.op_type in LOOKUPS and node.input[0] in tables and node.input[1] in computed:
            stored = free_name(f"{node.output[0]}/stored", taken)
            behind = onnx.NodeProto()
            behind.CopyFrom(tables[node.input[0]])
            behind.name = free_name(f"{node.name}/real", taken)
            behind.input[0], behind.output[0] = stored, node.output[0]
            taken |= {stored, behind.name}
            node.input[0], node.output[0] = tables[node.input[0]].input[0], stored
            nodes.append(behind)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)


def _one_scale(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> bool:
    """Return whether DequantizeLinear ``node`` reads an 8-bit constant that has one scale."""
    if any(name not in constants for name in filter(None, node.input)):
        return False
    sizes = [list(constants[name].dims) for name in filter(None, node.input[1:])]
    return constants[node.input[0]].data_type in _TYPES and all(size in ([], [1]) for size in sizes)
