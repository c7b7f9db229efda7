"""Defines the kernel library: two layers of storage, and matching in two stages (**Run-time kernel matching**)."""

import heapq
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

from hw.image import Class1Value, KernelAttributes, ValueRange, check_class_2
from sw.kernels.demand import KernelDemand

Entry = TypeVar("Entry")


class Candidates(Generic[Entry]):
    """Holds entries with the values that they cover; it is immutable. ``exact`` has those of a single value, by it. The
    line of values is cut at ``begins``, where a range begins or has ended, and each piece has its winner among the
    ranges: the one that covers fewest values, so the marker alone comes last; of equally wide ones the first given."""

    __slots__ = ("begins", "entries", "exact", "winners")

    def __init__(self, entries: Sequence[tuple[ValueRange, Entry]]) -> None:
        self.entries = tuple(entries)
        self.exact = {covered.low: entry for covered, entry in reversed(self.entries) if covered.exact}
        self.begins, self.winners = _pieces([each for each in self.entries if not each[0].exact])

    def find(self, value: int) -> Entry | None:
        """Return the entry for ``value``: an exact one, else a range, or None if none covers it."""
        found = self.exact.get(value)
        return self.winners[bisect_right(self.begins, value) - 1] if found is None else found


def _pieces(entries: Sequence[tuple[ValueRange, Entry]]) -> tuple[list[int], list[Entry | None]]:
    """Return where pieces begin, and their winners. The last piece, beyond all entries, has none: so a value below the
    first piece, which is looked up at index -1, has none either."""
    if not entries:
        return [1], [None]
    begins = sorted({end for covered, _ in entries for end in (covered.low, covered.high + 1)})
    order = sorted(range(len(entries)), key=lambda number: entries[number][0].low)
    winners: list[Entry | None] = []
    alive: list[tuple[int, int]] = []  # (values covered, number)
    taken = 0
    for begin in begins:
        while taken < len(order) and entries[order[taken]][0].low <= begin:
            covered = entries[order[taken]][0]
            heappush(alive, (covered.high - covered.low, order[taken]))
            taken += 1
        while alive and entries[alive[0][1]][0].high < begin:
            heappop(alive)
        winners.append(entries[alive[0][1]][1] if alive else None)
    return begins, winners


Content = TypeVar("Content")
_NAMED = 3  #: kernels that an error names


@dataclass(frozen=True, eq=False)
class LibraryKernel(Generic[Content]):
    """Is a kernel of a library: attributes, and what the library's owner runs for it. ``name`` is for messages."""

    name: str
    attributes: KernelAttributes
    content: Content

    def __str__(self) -> str:
        return f"{self.name!r} ({self.attributes.parameter} {self.attributes.covered.written()})"


def kernel_name(class_1: Mapping[str, Class1Value], model: str) -> str:
    """Return what a kernel of ``model`` is called in messages: by its operator, if it is of one operation."""
    operator = str(class_1.get("operator", model))
    return f"{operator} {class_1['heads']} x {class_1['head_size']}" if "head_size" in class_1 else operator


class DuplicateKernelError(ValueError):
    """Says that a kernel has the attributes of another one in the library."""


class NoKernelError(LookupError):
    """Says that no kernel covers what an operation asks for. ``nearest``: those that come nearest, best first."""

    def __init__(self, demand: KernelDemand, value: int, nearest: Sequence[LibraryKernel], problem: str) -> None:
        self.demand, self.value, self.nearest = demand, value, list(nearest)
        super().__init__(f"no kernel for {demand} at {demand.parameter} {value}: {problem}")


class KernelLibrary(Generic[Content]):
    """Holds kernels, and matches them by what operations ask for.

    The first layer is a hash map from class-1 keys to candidates, the second an array of each key's candidates by
    class-2 value. Any number of threads may match while others add: tables are never changed, only replaced by whole
    ones, so a match sees the library as it was before or after an addition.
    """

    def __init__(self, kernels: Iterable[LibraryKernel[Content]] = ()) -> None:
        self._table: dict[str, Candidates[LibraryKernel[Content]]] = {}
        self._writing = threading.Lock()
        self.add(*kernels)

    def add(self, *kernels: LibraryKernel[Content]) -> None:
        """Add all of ``kernels``, or none: :class:`DuplicateKernelError` if one has the attributes of another."""
        with self._writing:
            added: dict[str, dict] = {}
            for kernel in kernels:
                key, covered = kernel.attributes.key, kernel.attributes.covered
                if key not in added:
                    added[key] = dict(self._table[key].entries) if key in self._table else {}
                if covered in added[key]:
                    raise DuplicateKernelError(
                        f"kernel {kernel} has the attributes of {added[key][covered]}, which is in the library: remove "
                        "that one first"
                    )
                added[key][covered] = kernel
            made = {key: Candidates(list(entries.items())) for key, entries in added.items()}
            self._table = {**self._table, **made}

    def remove(self, kernel: LibraryKernel[Content]) -> None:
        """Take ``kernel`` out. What has matched it keeps it. Raises ``KeyError`` if it is not there."""
        with self._writing:
            key, table = kernel.attributes.key, dict(self._table)
            before = table.pop(key).entries if key in table else ()
            entries = [entry for entry in before if entry[1] is not kernel]
            if len(entries) == len(before):
                raise KeyError(f"kernel {kernel} is not in the library")
            if entries:
                table[key] = Candidates(entries)
            self._table = table

    def find(self, demand: KernelDemand, value: int) -> LibraryKernel[Content] | None:
        """Return the kernel for ``demand`` with class-2 value ``value``: of those with its class-1 values the one whose
        value it is, else the one with the narrowest range that covers it, or None if there is none. Raises
        ``AttributeProblem`` for a value that no request has."""
        check_class_2(value, demand.parameter)
        candidates = self._table.get(demand.key)
        return None if candidates is None else candidates.find(value)

    def match(self, demand: KernelDemand, value: int) -> LibraryKernel[Content]:
        """Return the kernel as :meth:`find` does, but raise :class:`NoKernelError` if there is none."""
        if type(value) is int:
            candidates = self._table.get(demand.key)
            if candidates is not None:
                found = candidates.exact.get(value)
                if found is None:
                    found = candidates.winners[bisect_right(candidates.begins, value) - 1]
                if found is not None:
                    return found
        raise self._no_kernel(demand, check_class_2(value, demand.parameter))

    def match_all(
        self, demands: Iterable[KernelDemand], current: Mapping[str, int], *, fallback: bool = False
    ) -> dict[str, LibraryKernel[Content] | None]:
        """Return the kernel of each operation for one inference with these current values. With ``fallback``, None
        stands for an operation that no kernel covers, and that the caller computes otherwise; without, it is a
        :class:`NoKernelError`."""
        choose = self.find if fallback else self.match
        return {demand.operation: choose(demand, demand.value_in(current)) for demand in demands}

    def candidates(self, demand: KernelDemand) -> list[LibraryKernel[Content]]:
        """Return the kernels with the class-1 values of ``demand``, in the order in which they were added."""
        found = self._table.get(demand.key)
        return [kernel for _, kernel in found.entries] if found else []

    def __iter__(self) -> Iterator[LibraryKernel[Content]]:
        table = self._table
        return (kernel for candidates in table.values() for _, kernel in candidates.entries)

    def __len__(self) -> int:
        return sum(len(candidates.entries) for candidates in self._table.values())

    def _no_kernel(self, demand: KernelDemand, value: int) -> NoKernelError:
        candidates = self.candidates(demand)
        if candidates:
            near = heapq.nsmallest(_NAMED, candidates, key=lambda k: k.attributes.covered.distance(value))
            return NoKernelError(demand, value, near, f"the nearest are {', '.join(map(str, near))}")
        others = heapq.nsmallest(_NAMED, self, key=lambda k: (len(_differences(demand, k)), _misses(k, value)))
        if not others:
            return NoKernelError(demand, value, [], "the library is empty")
        told = "; ".join(f"{kernel} has {', '.join(_differences(demand, kernel))}" for kernel in others)
        return NoKernelError(demand, value, others, f"none has its class-1 values: {told}")


def _misses(kernel: LibraryKernel, value: int) -> int:
    return kernel.attributes.covered.distance(value)


def _differences(demand: KernelDemand, kernel: LibraryKernel) -> list[str]:
    """Return what a kernel has otherwise than ``demand`` asks."""
    theirs = kernel.attributes.class_1
    told = [
        f"{name} {theirs[name]!r}" if name in theirs else f"no {name}"
        for name in dict.fromkeys((*demand.class_1, *theirs))
        if (name in theirs, type(theirs.get(name)), theirs.get(name))
        != (name in demand.class_1, type(demand.class_1.get(name)), demand.class_1.get(name))
    ]
    if kernel.attributes.parameter != demand.parameter:
        told.append(f"class-2 parameter {kernel.attributes.parameter!r}")
    return told
