"""Shows on a terminal, while models are served, what engines, LV2 and requests do at that moment, as ``top`` does."""

import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live

from caesura.views.progress import Progress
from caesura.views.tables import ColumnTable, percent, shown, table_of
from caesura.views.terminal import line
from sw.driver import LoadedModel
from sw.runtime import RequestRunner, Snapshot, State, name_of, take_snapshot

EVERY = 5_000  #: simulated cycles between two pictures
_SECONDS = 0.1  #: of wall time between two pictures, at least: nobody sees more
_MOST = 20  #: requests in a picture


class LiveView(Progress):
    """Is a progress line that gives way to a view of the run time while one is watched. Where there is no terminal on
    standard error, it shows nothing.

    ``every``: simulated cycles between two pictures; ``seconds``: wall time, at least.
    """

    def __init__(self, console: Console | None = None, *, every: int = EVERY, seconds: float = _SECONDS) -> None:
        super().__init__()
        self._console = console or Console(stderr=True)
        self._every, self._seconds = every, seconds
        self._live: Live | None = None
        self._looks: list[Callable[[], Snapshot]] = []
        self._origin = self._next = 0
        self._drawn = -seconds

    def __exit__(self, *error: object) -> None:
        self._leave()
        super().__exit__(*error)

    def task(self, what: str, *, cycle: int | None = None, expected: int = 0) -> None:
        """Name what runs now; what was watched is left."""
        self._leave()
        super().task(what, cycle=cycle, expected=expected)

    def watch(self, runtime: RequestRunner, names: Callable[[LoadedModel], str] | None = None) -> None:
        """Show what ``runtime`` does from now on, until the next task, below others that are watched. ``names`` is what
        models are called, by default as their files."""
        if not self._console.is_terminal:
            return
        self._looks.append(lambda: take_snapshot(runtime, names or name_of))
        if self._live is not None:
            return
        what = self._what
        self.rest()
        self._what = what
        self._origin = self._next = runtime.device.bus.cycle
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def cycles(self, cycle: int) -> None:
        """Take the cycle that the simulator reports, and draw a picture if it is time."""
        if self._live is None:
            super().cycles(cycle)
            return
        now = time.monotonic()
        if cycle >= self._next and now >= self._drawn + self._seconds:
            self._next, self._drawn = cycle + self._every, now
            self._live.update(Group(*self._pictures()), refresh=True)

    def _pictures(self) -> Iterator[RenderableType]:
        for number, look in enumerate(self._looks):
            title = self._what if len(self._looks) == 1 else f"{self._what}, device {number}"
            yield picture(look(), title, self._origin)

    def _leave(self) -> None:
        if self._live is not None:
            self._live.stop()
        self._live, self._looks = None, []


def picture(moment: Snapshot, title: str = "", origin: int = 0) -> RenderableType:
    """Return ``moment`` as text for a terminal; cycles count from ``origin`` on."""
    return Group(
        line(_headline(moment, title, origin)), _engines(moment, moment.cycle - origin).rich(), line(_lv2(moment)),
        *(_requests(moment) if moment.requests else ()),
    )  # fmt: skip


def _headline(moment: Snapshot, title: str, origin: int) -> str:
    states = ", ".join(
        f"{moment.count(state)} {state.value}" for state in (State.RUNNING, State.SUSPENDED, State.WAITING)
    )
    cycle, moving = moment.cycle - origin, ", memories are moved" if moment.moving else ""
    return f"{title or 'run time'}: cycle {cycle:,}, requests: {states}; {moment.switches} switches{moving}"


def _engines(moment: Snapshot, cycles: int) -> ColumnTable:
    share = lambda busy: percent(min(1.0, busy / cycles)) if cycles > 0 else ""  # noqa: E731
    heads = ("engine", "model", "next to end", ">jobs queued", ">computing", ">loading")
    rows = [(e.number, e.model, e.job, e.queued, share(e.computing), share(e.loading)) for e in moment.engines]
    return table_of("", heads, rows)


def _lv2(moment: Snapshot) -> str:
    held = [f"{r.model} {r.windows:,} ({r.state.value})" for r in moment.requests if r.windows]
    return f"LV2: {moment.claimed:,} of {moment.lv2:,} bytes claimed; windows of {', '.join(held) or 'nobody'}"


def _requests(moment: Snapshot) -> Iterator[RenderableType]:
    heads = (
        "request", "model", "tenant", ">priority", "state", ">done", ">cycles since arrival", "engines",
        ">bytes dumped", ">bytes to dump",
    )  # fmt: skip
    rows = [
        (
            f"{r.number:03}", r.model, r.tenant or "", r.priority, r.state.value, f"{r.progress:.0%}", r.waits,
            r.engines, *(map(shown, (r.dumped, r.to_dump)) if r.state is State.SUSPENDED else ("", "")),
        )
        for r in moment.requests[:_MOST]
    ]  # fmt: skip
    yield table_of("", heads, rows).rich()
    if (more := len(moment.requests) - _MOST) > 0:
        yield line(f"and {more} more")
