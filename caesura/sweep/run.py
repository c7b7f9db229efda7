"""Runs the points of a sweep, as many at a time as there are cores, or on the workers of a Dask scheduler."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from caesura.scenario.dependencies import dependencies_digest
from caesura.sweep.measure import measure
from caesura.sweep.processes import Task, in_processes
from caesura.sweep.spec import Point, SweepError
from caesura.sweep.store import Figures, Store, key_of
from sim import sources_digest

_SOURCES = ("caesura", "compiler", "hw", "sim", "sw")  #: all code that figures come from

ANSWER = "10s"  #: time in which a scheduler answers

Told = Callable[[int, int, Point | None], None]  #: called with points done, all points, and the one that has just ended
Measured = Iterator[tuple[Point, Figures | BaseException]]  #: points as they end, or the exception instead of figures


def run_sweep(
    points: Sequence[Point], store: Store, *, scheduler: str | None = None, jobs: int, told: Told
) -> list[Figures]:
    """Return the figures of all ``points``, in their order; what ``store`` knows is not run again. ``scheduler``: the
    address of a Dask scheduler; otherwise ``jobs`` processes of this computer. Raises :class:`SweepError` if no
    scheduler answers."""
    contents = {path: path.read_bytes() for path in {point.model for point in points} if path}
    digests = _Digests(contents)
    keys = [key_of(point, digests.of(point), sources_digest(*_SOURCES)) for point in points]
    tasks = [
        (point, contents[point.model] if point.model else b"")
        for key, point in zip(keys, points, strict=True)
        if store.get(key) is None
    ]
    done = len(points) - len(tasks)
    told(done, len(points), None)
    lost: dict[str, Figures] = {}
    by_point = dict(zip((point.number for point in points), keys, strict=True))
    for point, figures in _measured(tasks, scheduler, jobs):
        key = by_point[point.number]
        if isinstance(figures, BaseException):  # a worker died, say: that is tried again the next time
            lost[key] = {"error": f"{type(figures).__name__}: {figures}"}
        elif point.scenario and _Digests(contents).of(point) != digests.of(point):
            lost[key] = {"error": "a file that the scenario names changed while the sweep ran: run the sweep again"}
        else:
            store.put(key, point, figures)
        done += 1
        told(done, len(points), point)
    return [store.get(key) or lost[key] for key in keys]


class _Digests:
    """Finds digests of what points depend on, each once."""

    def __init__(self, contents: dict[Path, bytes]) -> None:
        self._models = {path: hashlib.sha256(raw).hexdigest() for path, raw in contents.items()}
        self._scenarios: dict[tuple[Path, str, str], str] = {}

    def of(self, point: Point) -> str:
        """Return the digest of what ``point`` depends on."""
        if point.model:
            return self._models[point.model]
        assert point.scenario is not None
        asked = point.scenario, point.policy, point.backend
        if asked not in self._scenarios:
            self._scenarios[asked] = dependencies_digest(*asked)
        return self._scenarios[asked]


def _measured(tasks: Sequence[Task], scheduler: str | None, jobs: int) -> Measured:
    if not tasks:
        return
    if scheduler is not None:
        yield from _on_cluster(tasks, scheduler)
    elif jobs > 1:
        yield from in_processes(tasks, jobs)
    else:
        for point, content in tasks:
            yield point, measure(point, content)


def _on_cluster(tasks: Sequence[Task], scheduler: str) -> Measured:
    from dask.distributed import Client, as_completed

    try:
        client = Client(scheduler, timeout=ANSWER)
    except (OSError, ValueError) as error:
        raise SweepError(f"no Dask scheduler answers at {scheduler!r}: {error}") from None
    with client:
        contents = {point.model: content for point, content in tasks}
        shipped = {model: client.scatter(content, broadcast=True) for model, content in contents.items()}
        futures = {client.submit(measure, point, shipped[point.model], pure=False): point for point, _ in tasks}
        for future in as_completed(futures):
            failure = future.exception()
            yield futures[future], future.result() if failure is None else failure
