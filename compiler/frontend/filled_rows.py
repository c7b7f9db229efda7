"""Where rows of a state are that have not been filled yet, and what keeps them from counting.

Attention multiplies queries with all rows, so that some columns of the scores mean nothing. Softmax leaves those out
and gives them the weight 0, with which values that are not there count for nothing either.
"""

import enum
from dataclasses import dataclass

from compiler.ir import Append, CompileError, Eltwise, Graph, Operation, Product, Repeat, Reshape, Softmax, Table


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
