"""Operators of one tensor, joined to one table.

An exporter writes ``x * sigmoid(x)`` as two operators and a GELU as five, and a quantiser stores each result between
them. Every step is a function of a byte, so all of them together are one, too: a table of 256 bytes, which onnxruntime
evaluates with all the roundings between the steps. What makes ``x`` passes its result through that table on its way to
memory. Where another operator or an output reads what lies between, it must be computed anyway, and all stays as it is.
"""

from dataclasses import dataclass, replace

from compiler.frontend.ops.pointwise import evaluated
from compiler.frontend.problems import Unsupported
from compiler.frontend.source import free_name
from compiler.ir import Conv, Eltwise, Graph, Operation, Permute, Product, Reshape, Table, Tensor


def join_tables(graph: Graph) -> None:
    """Replace each operator on two functions of one tensor by a table of that tensor, and put tables in front of
    reshapes, next to what makes their input. What nothing reads any more stays for the importer to drop."""
    for joined in (_table_of, _before_reshapes):
        flow = _Flow.of(graph)
        for op in list(graph.ops):
            if made := joined(graph, flow, op):
                place = next(i for i, other in enumerate(graph.ops) if other is op)
                graph.ops[place : place + 1] = made
                flow = _Flow.of(graph)


@dataclass(frozen=True)
class _Flow:
    """Says of each tensor what makes it, and which operators read it, of those that an output needs."""

    makers: dict[str, Operation]
    readers: dict[str, list[Operation]]
    outputs: frozenset[str]

    @classmethod
    def of(cls, graph: Graph) -> "_Flow":
        """Return who makes and reads what in ``graph``."""
        outputs = frozenset(port.tensor for port in graph.outputs)
        needed, readers = set(outputs), dict[str, list[Operation]]()
        for op in reversed(graph.ops):
            if needed.intersection(op.results):
                needed.update(op.inputs)
                for name in dict.fromkeys(op.inputs):
                    readers.setdefault(name, []).append(op)
        return cls({name: op for op in graph.ops for name in op.results}, readers, outputs)

    def steps(self, tensor: str) -> list[str]:
        """Return ``tensor``, what it is a function of byte by byte, what that is a function of, and so on."""
        found = [tensor]
        while isinstance(op := self.makers.get(found[-1]), Table | Reshape):
            found.append(op.inputs[0])
        return found

    def read_within(self, tensor: str, ops: list[Operation]) -> bool:
        """Return whether nobody but ``ops`` reads ``tensor``."""
        within = {id(op) for op in ops}
        return tensor not in self.outputs and all(id(op) in within for op in self.readers.get(tensor, ()))


def _table_of(graph: Graph, flow: _Flow, op: Operation) -> list[Operation] | None:
    """Return ``op``, which combines functions of one tensor, as a table; None if it is another operator."""
    if not isinstance(op, Eltwise) or len({graph.tensors[name].size for name in op.inputs}) > 1:
        return None
    a, b = (flow.steps(name) for name in op.inputs)
    root, held = next((name for name in a if name in b), ""), graph.tensors[op.output]
    if not root or graph.tensors[root].data is not None:
        return None
    between = [*a[: a.index(root)], *b[: b.index(root)]]
    steps = [op, *(flow.makers[name] for name in between)]
    begin = _in_onnx(graph, flow, root)
    if not held.onnx_name or begin is None or not all(flow.read_within(name, steps) for name in between):
        return None
    try:
        table = evaluated(graph.source, begin.onnx_name, begin.dtype, held.onnx_name)
    except Unsupported:
        return None  # onnxruntime cannot evaluate the steps together; each has been evaluated alone
    nodes = [node.name for node in graph.source.between([held.onnx_name], [begin.onnx_name])]
    source, moves = root, list[Operation]()
    if graph.tensors[root].shape != held.shape:
        source = free_name(f"{root}:" + "x".join(map(str, held.shape)), graph.tensors)
        graph.tensors[source] = replace(graph.tensors[root], name=source, shape=held.shape)
        moves = [Reshape(source, [root], source)]
    return [*moves, Table(op.name, [source], op.output, nodes=nodes, table=table)]


def _before_reshapes(graph: Graph, flow: _Flow, op: Operation) -> list[Operation] | None:
    """Return table ``op`` on what is in front of the reshapes that it reads, and a reshape; None if ``op`` is no table,
    or a table there would not save one layer."""
    if not isinstance(op, Table):
        return None
    reader: Operation = op
    root = op.inputs[0]
    while isinstance(move := flow.makers.get(root), Reshape) and flow.read_within(root, [reader]):
        root, reader = move.inputs[0], move
    makes = isinstance(flow.makers.get(root), Conv | Eltwise | Product | Table)
    if root == op.inputs[0] or not makes or not flow.read_within(root, [reader]):
        return None
    inner, shape = free_name(f"{op.output}:made", graph.tensors), graph.tensors[root].shape
    graph.tensors[inner] = replace(graph.tensors[op.output], name=inner, shape=shape)
    made = Table(op.name, [root], inner, nodes=op.nodes, table=op.table)
    return [made, Reshape(inner, [inner], op.output)]


def _in_onnx(graph: Graph, flow: _Flow, tensor: str) -> Tensor | None:
    """Return the tensor of ONNX whose elements ``tensor`` holds in some order; None if there is none."""
    while not graph.tensors[tensor].onnx_name:
        op = flow.makers.get(tensor)
        if not isinstance(op, Permute | Reshape):
            return None
        tensor = op.inputs[0]
    return graph.tensors[tensor]
