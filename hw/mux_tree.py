"""Builds read multiplexers."""

from amaranth.hdl import Const, Mux, Value


def mux_tree(index: Value, leaves: list) -> Value:
    """Return ``leaves[index]`` as a balanced tree of two-way multiplexers; ``None`` leaves may read as anything.

    A compiled simulation walks one path of such a tree, where a wide shift or a chain of comparisons would touch
    every leaf.
    """
    return _subtree(index, leaves, len(index)) if leaves else Const(0)


def _subtree(index: Value, leaves: list, bits: int) -> Value:
    if all(leaf is None for leaf in leaves):
        return Const(0)
    if bits == 0 or len(leaves) == 1:
        return leaves[0]
    half = 1 << (bits - 1)
    low, high = leaves[:half], leaves[half:]
    if all(leaf is None for leaf in high):
        return _subtree(index, low, bits - 1)
    if all(leaf is None for leaf in low):
        return _subtree(index, high, bits - 1)
    return Mux(index[bits - 1], _subtree(index, high, bits - 1), _subtree(index, low, bits - 1))
