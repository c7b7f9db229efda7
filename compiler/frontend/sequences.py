"""A step model for several sequences at once: what they share is computed for all, what each has of its own for each.

Weights are the same for every sequence, so a product with them takes a row of each, and loads them once. States,
numbers, and what attends to a state belong to one sequence. A tensor that holds all sequences is that of the first
with a row, or an image, of each behind the other; so a sequence's part of it is a slice that nothing copies.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from compiler.ir import (
    CompileError,
    Concat,
    Conv,
    Eltwise,
    Graph,
    LayerNorm,
    Lookup,
    Operation,
    Port,
    Reshape,
    RmsNorm,
    Slice,
    Table,
    Tensor,
)

Shape = tuple[int, ...]


def name_of(name: str, sequence: int) -> str:
    """Return what a tensor, operator or port of one sequence is called where there are several."""
    return f"{name}.{sequence}"


def side_by_side(graph: Graph, sequences: int) -> Graph:
    """Return the graph of a step of ``sequences`` sequences, that of one of which is ``graph``. Inputs that are numbers
    or states, and outputs that are states, are there once for each (:func:`name_of`); other inputs and outputs have
    one part of each along their first axis. Raises :class:`CompileError` for a graph without a state, or with an
    input or output that cannot be put together."""
    if sequences < 1:
        raise CompileError(f"{graph.name}: {sequences} sequences; there must be one at least")
    if not any(op.places for op in graph.ops):
        raise CompileError(
            f"{graph.name}: it keeps nothing from one inference to the next, so sequences of it are a batch: compile "
            f"it with batch={sequences}"
        )
    return graph if sequences == 1 else _Sequences(graph, sequences).made


class _Sequences:
    """The walk over the operators of one sequence, in order."""

    def __init__(self, graph: Graph, count: int) -> None:
        self._one, self._count = graph, count
        self.made = Graph(graph.name)
        self._whole: dict[str, str] = {}  #: by name in the graph of one sequence, a tensor that holds all
        self._each: dict[str, list[str]] = {}
        self._shaped: dict[tuple[str, Shape], str] = {}
        self._states = {name for op in graph.ops for name in (*op.places, *op.places.values())}
        self._numbers()
        for port in graph.inputs:
            if port.tensor not in graph.numbers:
                self._input(port)
        for op in graph.ops:
            self._add(op)
        self.made.outputs = [made for port in graph.outputs for made in self._output(port)]

    # Ends.

    def _numbers(self) -> None:
        ports = {port.tensor: port for port in self._one.inputs}
        for name, number in self._one.numbers.items():
            self._each[name] = [self._tensor(name, i) for i in range(self._count)]
            for i, made in enumerate(self._each[name]):
                self.made.numbers[made] = number
                if name in ports:
                    self.made.inputs.append(replace(ports[name], name=name_of(ports[name].name, i), tensor=made))

    def _input(self, port: Port) -> None:
        if port.tensor in self._states:
            self._each[port.tensor] = [self._tensor(port.tensor, i) for i in range(self._count)]
            for i, made in enumerate(self._each[port.tensor]):
                self.made.inputs.append(replace(port, name=name_of(port.name, i), tensor=made))
            return
        self._check(port)
        whole = self._all(port.tensor)
        self.made.inputs.append(replace(port, shape=(self._count, *port.shape[1:]), tensor=whole))

    def _output(self, port: Port) -> Iterator[Port]:
        if port.tensor in self._states:
            for i, made in enumerate(self._each[port.tensor]):
                yield replace(port, name=name_of(port.name, i), tensor=made)
            return
        self._check(port)
        yield replace(port, shape=(self._count, *port.shape[1:]), tensor=self._together(port.tensor))

    def _check(self, port: Port) -> None:
        if port.shape[:1] != (1,) or port.perm[:1] != (0,) or self._one.tensors[port.tensor].shape[:1] != (1,):
            raise CompileError(
                f"{self._one.name}: {port.name!r} has shape {port.shape}; several sequences need a first axis of 1"
            )

    # Operators.

    def _add(self, op: Operation) -> None:
        if isinstance(op, Lookup) and self._one.tensors[op.output].shape[0] == 1:
            self._look_up(op)
            return
        form = self._form(op)
        if form is None:
            self._apart(op)
            return
        given = [name if self._constant(name) else self._in_form(name, form) for name in op.inputs]
        made = self._all(op.output, form)
        self.made.ops.append(replace(op, inputs=given, output=made))

    def _apart(self, op: Operation) -> None:
        """Add an operator for each sequence."""
        for i in range(self._count):
            given = [name if self._constant(name) else self._part(name, i) for name in op.inputs]
            self._each_of(op, i)
            named: dict[str, Any] = {"output": self._each[op.output][i]}
            named |= {key: self._each[getattr(op, key)][i] for key in ("kept",) if hasattr(op, key)}
            self.made.ops.append(replace(op, name=name_of(op.name, i), inputs=given, **named))

    def _look_up(self, op: Lookup) -> None:
        """Add a look-up for as many numbers as there are sequences."""
        table, number = op.inputs
        self._constant(table)
        made = self._all(op.output, self._behind)
        self.made.ops.append(replace(op, inputs=[table, *self._each[number]], output=made))

    def _each_of(self, op: Operation, sequence: int) -> None:
        for name in op.results:
            self._each.setdefault(name, []).append(self._tensor(name, sequence))

    def _form(self, op: Operation) -> Callable[[Shape], Shape] | None:
        """Return how tensors of all sequences lie where ``op`` computes them at once: from the shape of one that of
        all. None: it is computed for each."""
        read = [name for name in op.inputs if not self._constant(name)]
        shapes = [self._one.tensors[name].shape for name in (*read, op.output)]
        if any(shape[0] != 1 for shape in shapes):
            return None
        constants = [self._one.tensors[name] for name in op.inputs if self._constant(name)]
        rows = all(_is_row(shape) for shape in shapes)
        if isinstance(op, Conv):  # the reason for all of this: weights are loaded once
            return self._as_rows if rows and op.groups == 1 else None
        if not any(name in self._whole for name in read):
            return None
        if isinstance(op, RmsNorm | LayerNorm):
            return self._as_rows if rows else None
        if isinstance(op, Eltwise):
            if constants and not all(tensor.size == 1 or rows for tensor in constants):
                return None
            return self._as_rows if rows else self._as_images
        if isinstance(op, Table | Reshape) or (isinstance(op, Slice | Concat) and op.axis > 0 and not constants):
            return self._as_images
        return None

    def _as_rows(self, shape: Shape) -> Shape:
        return (*shape[:-2], self._count, shape[-1])

    def _as_images(self, shape: Shape) -> Shape:
        return (self._count, *shape[1:])

    def _behind(self, shape: Shape) -> Shape:
        """Return the shape in which the parts of sequences stand behind each other along one axis."""
        axis = _axis(shape)
        return (*shape[:axis], shape[axis] * self._count, *shape[axis + 1 :])

    # Tensors.

    def _constant(self, name: str) -> bool:
        tensor = self._one.tensors[name]
        if tensor.data is not None:
            self.made.tensors.setdefault(name, tensor)
        return tensor.data is not None

    def _tensor(self, name: str, sequence: int) -> str:
        made = name_of(name, sequence)
        return self._put(replace(self._one.tensors[name], name=made, onnx_name="", perm=(), view=()))

    def _put(self, tensor: Tensor) -> str:
        if tensor.name in self._one.tensors:
            raise CompileError(
                f"{self._one.name}: a tensor is called {tensor.name!r}, as is one of a sequence; rename it"
            )
        self.made.tensors[tensor.name] = tensor
        return tensor.name

    def _all(self, name: str, form: Callable[[Shape], Shape] | None = None) -> str:
        """Return a new tensor of all sequences, in ``form``."""
        one = self._one.tensors[name]
        shape = (form or self._as_images)(one.shape)
        self._whole[name] = self._put(replace(one, name=f"{name}.all", shape=shape, onnx_name="", perm=(), view=()))
        return self._whole[name]

    def _together(self, name: str) -> str:
        """Return the tensor of all sequences; their parts are put together if there is none yet."""
        if name not in self._whole:
            parts, shape = self._each[name], self._one.tensors[name].shape
            whole = self._all(name, self._behind)
            self.made.ops.append(Concat(f"{name}.together", parts, whole, axis=_axis(shape)))
        return self._whole[name]

    def _in_form(self, name: str, form: Callable[[Shape], Shape]) -> str:
        """Return the tensor of all sequences, in ``form``."""
        return self._reshaped(self._together(name), form(self._one.tensors[name].shape))

    def _part(self, name: str, sequence: int) -> str:
        """Return what a tensor has of a sequence."""
        if name not in self._each:
            shape = self._one.tensors[name].shape
            whole, axis = self._reshaped(self._whole[name], self._behind(shape)), _axis(shape)
            self._each[name] = [self._tensor(name, i) for i in range(self._count)]
            for i, made in enumerate(self._each[name]):
                self.made.ops.append(Slice(f"{made}.part", [whole], made, axis=axis, first=i * shape[axis]))
        return self._each[name][sequence]

    def _reshaped(self, name: str, shape: Shape) -> str:
        whole = self.made.tensors[name]
        if whole.shape == shape:
            return name
        if (name, shape) not in self._shaped:
            made = f"{name}:{'x'.join(map(str, shape))}"
            self._shaped[name, shape] = self._put(replace(whole, name=made, shape=shape))
            self.made.ops.append(Reshape(f"{made}.shaped", [name], made))
        return self._shaped[name, shape]


def _axis(shape: Shape) -> int:
    """Return the axis along which the rows of sequences stand behind each other."""
    return min(1, len(shape) - 2)


def _is_row(shape: Shape) -> bool:
    return len(shape) > 1 and all(size == 1 for size in shape[:-1])
