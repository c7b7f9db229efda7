"""Where rows of a state are that have not been filled yet, and what keeps them from counting.

Attention multiplies queries with all rows, so that some columns of the scores mean nothing. Softmax leaves those out
and gives them the weight 0, with which values that are not there count for nothing either.
"""

import enum
from dataclasses import dataclass

from compiler.ir import (
    Append,
    CompileError,
    Eltwise,
    Graph,
    NumberRange,
    Operation,
    Port,
    Product,
    Repeat,
    Reshape,
    Softmax,
    Table,
    Tensor,
)

LAST_ROW = "last_row"  #: an input: the number of the last token of an attention that is there


class _Unfilled(enum.Enum):
    """What of a tensor means nothing where rows are missing."""

    ROWS = "rows"  #: its rows
    COLUMNS = "columns"  #: its columns
    WEIGHTS = "weights"  #: nothing: columns are 0


@dataclass(frozen=True)
class _Rows:
    number: str
    what: _Unfilled


def count_rows(graph: Graph) -> None:
    """Have each softmax over the rows of a state leave out those that are not filled. Raises :class:`CompileError` for
    an operator that would read these."""
    found: dict[str, _Rows] = {}
    for op in graph.ops:
        if isinstance(op, Append):
            found[op.output] = _Rows(op.inputs[2], _Unfilled.ROWS)
            continue
        read = {name: found[name] for name in op.inputs if name in found}
        if not read:
            continue
        made = _result(graph, op, read)
        if made is not None:
            found[op.output] = made
        if isinstance(op, Softmax):
            op.inputs = [op.inputs[0], found[op.inputs[0]].number]


def bound_keys(graph: Graph) -> None:
    """Make of an attention one for any number of tokens up to that of its inputs: a new input, ``LAST_ROW``, int64 [1],
    is the number of the last token that there is. Results behind it mean nothing, whatever inputs hold there. Raises
    :class:`CompileError` for a graph that is not the attention of one product of queries and keys."""
    found: dict[str, _Rows] = {}
    softmax: Softmax | None = None
    keys = 0
    for op in graph.ops:
        read = {name: found[name] for name in op.inputs if name in found}
        if isinstance(op, Product) and not read and not keys:
            keys = graph.tensors[op.output].shape[-1]
            found[op.output] = _Rows(LAST_ROW, _Unfilled.COLUMNS)
        elif isinstance(op, Product) and read:
            if op.inputs[0] not in read or len(read) > 1 or op.transposed or not softmax:
                raise _not_bounded(graph, op)
        elif read:
            made = _result(graph, op, read)
            if made is None or graph.tensors[op.output].shape[-1] != keys or (isinstance(op, Softmax) and softmax):
                raise _not_bounded(graph, op)
            found[op.output] = made
            softmax = op if isinstance(op, Softmax) else softmax
        elif isinstance(op, Product | Softmax):
            raise _not_bounded(graph, op)
    if softmax is None:
        raise CompileError(f"{graph.name}: it has no attention, whose keys could be bounded")
    softmax.inputs = [softmax.inputs[0], LAST_ROW]
    graph.tensors[LAST_ROW] = Tensor(LAST_ROW, (1,), "int64")
    graph.numbers[LAST_ROW] = NumberRange(0, keys - 1)
    graph.inputs.append(Port(LAST_ROW, "int64", (1,), LAST_ROW, (0,), quantise=False))


def _not_bounded(graph: Graph, op: Operation) -> CompileError:
    return CompileError(f"{graph.name}: {op.kind} {op.name!r} is no part of an attention whose keys can be bounded")


def _result(graph: Graph, op: Operation, read: dict[str, _Rows]) -> _Rows | None:
    """Return what of the result of ``op`` means nothing."""
    first, *others = (read.get(name) for name in op.inputs)
    if isinstance(op, Product):
        (other,) = others
        if first is None and other and op.transposed and other.what is _Unfilled.ROWS:
            return _Rows(other.number, _Unfilled.COLUMNS)
        if first and first.what is _Unfilled.WEIGHTS and other and not op.transposed and other.what is _Unfilled.ROWS:
            return None
    elif first and not any(others):
        if isinstance(op, Reshape) or (isinstance(op, Repeat) and _keeps_rows(op)):
            return first
        if first.what is _Unfilled.COLUMNS and isinstance(op, Softmax):
            return _Rows(first.number, _Unfilled.WEIGHTS)
        if first.what is _Unfilled.COLUMNS and isinstance(op, Eltwise | Table):
            return first
    raise CompileError(
        f"{graph.name}: {op.kind} {op.name!r} reads rows of a state, filled or not ({next(iter(read))!r}); the "
        "accelerator attends to states by MatMul, Softmax over the last axis, and MatMul"
    )


def _keeps_rows(op: Repeat) -> bool:
    """Return whether rows, which are the first axis of more than one, come once."""
    return op.factors[0] == 1 and op.factors[1] == 1
