"""Tells what uses engines apart from what uses others."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Engines = frozenset[int]  #: numbers of engines; none of them stand for all


def meet(some: Engines, others: Engines) -> bool:
    """Return whether two sets of engines have a common one."""
    return not some or not others or not some.isdisjoint(others)


def apart(items: Iterable[Item], engines: Callable[[Item], Engines]) -> list[list[Item]]:
    """Return ``items`` in groups of which no two use a common engine, by the ``engines`` of each item."""
    groups: list[list[Item]] = []
    for item in items:
        met = [group for group in groups if any(meet(engines(item), engines(other)) for other in group)]
        joined = [other for group in met for other in group]
        groups = [*(group for group in groups if group not in met), [*joined, item]]
    return groups
