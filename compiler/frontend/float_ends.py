"""The float ends of a quantised model: what stands before its first 8-bit tensor, and what stands behind its last.

One rule says where the CPU takes a node over that the accelerator does not run:

* The *head*, all that is computed before anything reads 8-bit values as numbers, and the *tail*, all whose results are
  not stored in 8 bits any more, run on the CPU. There is nothing there that the accelerator could do in 8 bits.
* Amid the network, between 8-bit tensors, a node is refused unless the CPU is allowed to take over (``fallback``): it
  would part the network, and each part would wait for the CPU. Only the operators that are registered as steps of the
  CPU run there without being allowed: Softmax where the accelerator has no form of it, LogSoftmax, and look-ups in
  constant tables by indices that the CPU has, as those of embeddings.

A model has neither head nor tail if it is not quantised with constant scales, or has no operator between 8-bit tensors:
all of it would run on the CPU, which is not what somebody wants who compiles it for an accelerator.
"""

from collections.abc import Callable, Iterable, Mapping

import onnx

from compiler.frontend.problems import QuantisedForm, quantised_form
from compiler.frontend.source import OnnxSource

HEAD = "stands before the first 8-bit tensor"
TAIL = "stands behind the last 8-bit tensor"

Nodes = Iterable[onnx.NodeProto]


def ends_of(source: OnnxSource) -> Mapping[str, str]:
    """Return the names of the nodes in the head and the tail, each with its place as a reason."""
    if quantised_form(source.model) is not QuantisedForm.STATIC:
        return {}
    nodes = _computed(source)
    behind_reads = reached(nodes, _reads_8bit, lambda node: node.input, lambda node: node.output)
    before_stores = reached(nodes[::-1], _stores_8bit, lambda node: node.output, lambda node: node.input)
    tail = {node.name: TAIL for node in nodes if node.name not in before_stores}
    head = {node.name: HEAD for node in nodes if node.name not in behind_reads}
    amid = {node.op_type for node in nodes if node.name not in tail and node.name not in head}
    return tail | head if amid - {"QuantizeLinear", "DequantizeLinear"} else {}


def _computed(source: OnnxSource) -> list[onnx.NodeProto]:
    """Return the nodes whose results depend on the values of inputs, in order."""
    known = {value.name for value in source.model.graph.input}
    found = []
    for node in source.model.graph.node:
        if node.op_type != "Shape" and not known.isdisjoint(node.input):
            known.update(node.output)
            found.append(node)
    return found


def _reads_8bit(node: onnx.NodeProto) -> bool:
    return node.op_type in ("DequantizeLinear", "ConvInteger", "MatMulInteger") or _is_qoperator(node)


def _stores_8bit(node: onnx.NodeProto) -> bool:
    return node.op_type == "QuantizeLinear" or _is_qoperator(node)


def _is_qoperator(node: onnx.NodeProto) -> bool:
    return node.op_type.startswith("QLinear") or node.op_type == "QGemm"


def reached(
    nodes: Nodes, begins: Callable[[onnx.NodeProto], bool],
    near: Callable[[onnx.NodeProto], Iterable[str]], far: Callable[[onnx.NodeProto], Iterable[str]],
) -> set[str]:  # fmt: skip
    """Return the names of ``nodes`` that ``begins`` holds of, and of those that a path leads to from such a node:
    tensors of ``far`` sides go on to ``near`` sides."""
    tensors: set[str] = set()
    found: set[str] = set()
    for node in nodes:
        if begins(node) or not tensors.isdisjoint(filter(None, near(node))):
            found.add(node.name)
            tensors.update(filter(None, far(node)))
    return found
