"""Records what the run time did as spans of time, for traces and for figures."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sw.driver import HaltRecord, LoadedModel
from sw.driver.preempt.state_transfer import Dump, StateTransfer
from sw.runtime.request import Request

Kind = Literal["pause", "drain", "dump", "run", "restore", "resume"]


@dataclass(frozen=True)
class RunSpan:
    """Lasts from ``begin`` to ``end``, global cycle counts. ``engine`` is -1 where the span belongs to the host.

    Kinds: ``pause`` (host: from sending the pause until the task was off its engines), ``drain`` (pause sent to
    HALTED), ``dump`` and ``restore`` (supervisor jobs, with their ``bytes``), ``resume`` (host: bringing the task back
    until the jobs that were stopped are queued on all engines; those behind them follow), ``run`` (jobs of the request
    are on the engines).
    """

    kind: Kind
    request: int  #: number of the request that ran, was paused or came back; of a dump: the one it makes room for
    model: str
    engine: int
    begin: int
    end: int
    bytes: int = 0
    moved: tuple[LoadedModel, ...] = ()  #: of a dump or restore: suspended models whose data were moved

    @property
    def cycles(self) -> int:
        """Return the length of the span."""
        return self.end - self.begin


class SpanLog:
    """Keeps the spans of one run time, and dumps and restores: the newest ``history`` of each, or all. Where several
    requests are paused or resumed at once, the span names the oldest."""

    def __init__(self, history: int | None = None) -> None:
        self._spans: deque[RunSpan] = deque(maxlen=history)
        self._operations: deque[tuple[Request, StateTransfer]] = deque(maxlen=history)
        self._since: dict[int, int] = {}  #: when running requests began or went on, by number

    def runs(self, requests: Iterable[Request], cycle: int) -> None:
        """Log that jobs of ``requests`` are on the engines from ``cycle`` on."""
        self._since |= {request.number: cycle for request in requests}

    def stops(self, request: Request, cycle: int) -> None:
        """Log that no job of ``request`` is on the engines any more."""
        begin = self._since.pop(request.number, None)
        if begin is not None:
            self._add("run", request, begin, cycle)

    def paused(self, request: Request, sent: int, halts: Iterable[HaltRecord], cycle: int) -> None:
        """Log that a pause was ``sent``, and that at ``cycle`` the task was off its engines."""
        for halt in halts:
            if halt.cycle:
                self._add("drain", request, sent, halt.cycle, halt.engine)
        self._add("pause", request, sent, cycle)

    def resumed(self, request: Request, begin: int, end: int) -> None:
        """Log that the host brought a task back from ``begin`` to ``end``."""
        self._add("resume", request, begin, end)

    def moves(self, request: Request, operation: StateTransfer | None) -> None:
        """Log that a dump for ``request``, or its restore, was queued; its spans are known once its jobs have
        completed."""
        if operation is not None:
            self._operations.append((request, operation))

    def spans(self) -> list[RunSpan]:
        """Return all spans that are remembered, by beginning."""
        moved = [
            RunSpan(
                "dump" if isinstance(operation, Dump) else "restore",
                request.number,
                request.model.name,
                copy.engine,
                copy.start,
                copy.end,
                copy.bytes,
                copy.models,
            )
            for request, operation in self._operations
            for copy in operation.results
        ]
        return sorted([*self._spans, *moved], key=lambda span: (span.begin, span.end))

    def _add(self, kind: Kind, request: Request, begin: int, end: int, engine: int = -1) -> None:
        self._spans.append(RunSpan(kind, request.number, request.model.name, engine, begin, end))
