"""Runs two compiled backends in lockstep and compares every register in every cycle."""

import numpy as np
import numpy.typing as npt

from sim.rtl.base import Until
from sim.rtl.compiled import CompiledBus
from sim.rtl.side_by_side import DisagreementError, SideBySideBus

LEAST_MATCHED = 0.95  #: of the registers of the first backend that the second must know by the same name and width
_NAMED = 8  #: registers that a message shows

Register = tuple[int, str]  #: bits, hierarchical name


class LockstepError(DisagreementError):
    """Says that registers differ, or cannot be compared; names the cycle, the registers and both values."""


class LockstepBus(SideBySideBus):
    """Is a :class:`SideBySideBus` over two compiled backends that goes cycle by cycle and compares all registers of the
    same name and width after each. The first difference raises :class:`LockstepError`.

    Parameters
    ----------
    first, second : CompiledBus
        LockstepError if ``second`` knows less than ``LEAST_MATCHED`` of the registers of ``first``.
    """

    def __init__(self, first: CompiledBus, second: CompiledBus) -> None:
        super().__init__({first.backend: first, second.backend: second})
        self._pair = (first, second)
        places = [_places(bus.register_names) for bus in self._pair]
        self.compared = [register for register in places[0] if register in places[1]]
        self.unmatched = [register for register in places[0] if register not in places[1]]
        if len(self.compared) < LEAST_MATCHED * len(places[0]):
            examples = ", ".join(f"{name} ({bits} bits)" for bits, name in self.unmatched[:_NAMED])
            raise LockstepError(
                f"only {len(self.compared)} of {len(places[0])} registers of {first.backend} have one of the same "
                f"name and width in {second.backend}; among those that have not: {examples}"
            )
        self._words = [np.array([at for r in self.compared for at in place[r]], np.intp) for place in places]
        self._register_of_word = np.repeat(range(len(self.compared)), [len(places[0][r]) for r in self.compared])
        self._names = {name: index for index, (_, name) in enumerate(self.compared)}
        self._compare()

    def value(self, name: str) -> int:
        """Return the register of this hierarchical name after the latest cycle; raises KeyError if it is not
        compared."""
        words = self._latest[self._register_of_word == self._names[name]]
        return sum(int(word) << 64 * k for k, word in enumerate(words))

    def _compare(self) -> None:
        a, b = (bus.registers()[words] for bus, words in zip(self._pair, self._words, strict=True))
        if not np.array_equal(a, b):
            self._tell(a, b)
        self._latest = a

    def _tell(self, a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> None:
        different = np.unique(self._register_of_word[a != b])
        lines = []
        for index in different[:_NAMED]:
            at = np.flatnonzero(self._register_of_word == index)
            values = [sum(int(word) << 64 * k for k, word in enumerate(side[at])) for side in (a, b)]
            shown = ", ".join(f"{who} {value:#x}" for who, value in zip(self.buses, values, strict=True))
            bits, name = self.compared[index]
            lines.append(f"{name} ({bits} bits): {shown}")
        raise LockstepError(
            f"{len(different)} of {len(self.compared)} registers differ after cycle {self._cycle}: {'; '.join(lines)}"
        )

    # -- hooks -----------------------------------------------------------------------------------------------
    def _start_access(self, write: bool, address: int, value: int) -> None:
        super()._start_access(write, address, value)
        self._compare()

    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        start = self._cycle
        try:
            for ran in range(1, limit + 1):
                _, met = super()._run(1, until)
                self._cycle = start + ran  # for messages: the caller counts
                self._compare()
                if met:
                    return ran, True
            return limit, False
        finally:
            self._cycle = start


def _places(names: list[Register]) -> dict[Register, range]:
    """Return where the words of each register are."""
    places, at = {}, 0
    for register in names:
        words = (register[0] + 63) // 64
        places[register] = range(at, at + words)
        at += words
    return places
