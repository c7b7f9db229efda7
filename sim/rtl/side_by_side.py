"""Drives several simulations of the same netlist by the same calls."""

from typing import TypeVar

from sim.rtl.base import RtlBus, Until

Answer = TypeVar("Answer")


class DisagreementError(AssertionError):
    """Says that two simulations of the same netlist differ; names cycle, what differs and the values."""


class SideBySideBus(RtlBus):
    """Is a :class:`hw.contract.bus.Bus` over simulations that are fresh from power-on. Every call goes to all of them.

    All must answer the same, or :class:`DisagreementError` is raised. Closing closes all.

    Parameters
    ----------
    buses : by name, at least one, with the same parameters and costs
    """

    def __init__(self, buses: dict[str, RtlBus]) -> None:
        first = next(iter(buses.values()))
        super().__init__(first.params, first.costs, None)
        self.buses = buses

    def same(self, what: str, answers: list[Answer]) -> Answer:
        """Return the answer that all gave to the question ``what``."""
        if any(answer != answers[0] for answer in answers):
            shown = ", ".join(f"{name} {answer}" for name, answer in zip(self.buses, answers, strict=True))
            raise DisagreementError(f"{what} differs in cycle {self._cycle}: {shown}")
        return answers[0]

    # -- hooks -----------------------------------------------------------------------------------------------
    def _start_access(self, write: bool, address: int, value: int) -> None:
        for bus in self.buses.values():
            bus._start_access(write, address, value)

    def _response(self) -> tuple[int, bool]:
        return self.same("the response", [bus._response() for bus in self.buses.values()])

    def _irq(self) -> bool:
        return self.same("the interrupt line", [bus._irq() for bus in self.buses.values()])

    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        return self.same("the length of a run", [bus._run(limit, until) for bus in self.buses.values()])

    def _load(self, address: int, size: int) -> bytes:
        contents = [bus._load(address, size) for bus in self.buses.values()]
        if any(content != contents[0] for content in contents):
            at = next(i for i in range(size) if len({content[i] for content in contents}) > 1)
            self.same(f"DRAM at {address + at:#x}", [content[at] for content in contents])
        return contents[0]

    def _store(self, address: int, data: bytes) -> None:
        for bus in self.buses.values():
            bus._store(address, data)

    def _set(self, what: str, *values: int) -> None:
        for bus in self.buses.values():
            bus._set(what, *values)

    def _release(self) -> None:
        for bus in self.buses.values():
            bus.close()
