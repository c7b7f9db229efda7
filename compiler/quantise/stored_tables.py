"""Look-ups of a quantised model in constant tables: 8-bit rows are taken, and DequantizeLinear stands behind."""

import onnx

from compiler.frontend.narrow_lookups import LOOKUPS, narrow_lookups


def stored_tables(model: onnx.ModelProto) -> None:
    """Let look-ups take rows of what is stored, and go on with them as they are: onnxruntime's quantiser takes rows of
    real numbers, and stores these in the table's steps again, which changes nothing."""
    narrow_lookups(model)
    makers = {name: node for node in model.graph.node for name in node.output}
    outputs, same = {value.name for value in model.graph.output}, dict[str, str]()
    for node in model.graph.node:
        back = makers.get(node.input[0]) if node.op_type == "QuantizeLinear" else None
        found = makers.get(back.input[0]) if back is not None and back.op_type == "DequantizeLinear" else None
        if back is None or found is None or found.op_type not in LOOKUPS or node.output[0] in outputs:
            continue
        if back.input[1:] == node.input[1:]:
            same[node.output[0]] = back.input[0]
    for node in model.graph.node:
        node.input[:] = [same.get(name, name) for name in node.input]
    kept = [node for node in model.graph.node if node.output[0] not in same]
    read = {*outputs, *(name for node in kept for name in node.input)}
    kept = [node for node in kept if node.op_type != "DequantizeLinear" or node.output[0] in read]
    del model.graph.node[:]
    model.graph.node.extend(kept)
