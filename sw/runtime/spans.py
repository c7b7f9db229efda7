"""What a preemptive run did, as spans of time: for traces and for figures."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["pause", "drain", "dump", "run", "restore", "resume"]


@dataclass(frozen=True)
class Span:
    """``begin`` to ``end``, global cycle counts. ``engine``: -1 where the span belongs to the host.

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

    @property
    def cycles(self) -> int:
        """Its length."""
        return self.end - self.begin
