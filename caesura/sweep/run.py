"""Run the points of a sweep, as many at a time as there are cores, or on the workers of a Dask scheduler."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from caesura.sweep.measure import measure
from caesura.sweep.spec import Point, SweepError
from caesura.sweep.store import Figures, Store, key_of
from sim.cache_folder import sources_digest

_SOURCES = ("caesura", "compiler", "hw", "sim", "sw")  #: all code that figures come from

ANSWER = "10s"  #: time in which a scheduler answers

Told = Callable[[int, int, Point | None], None]  #: called with points done, all points, and the one that has just ended


def run_sweep(
    points: Sequence[Point], store: Store, *, scheduler: str | None = None, jobs: int, told: Told
) -> list[Figures]:
    """Figures of all ``points``, in their order; what ``store`` knows is not run again. ``scheduler``: the address of
    a Dask scheduler; otherwise ``jobs`` processes of this computer. Raises :class:`SweepError` if no scheduler answers.
    """
    contents = {path: path.read_bytes() for path in {point.model or point.scenario for point in points} if path}
    keys = [key_of(point, contents[_file(point)], sources_digest(*_SOURCES)) for point in points]
    missing = [(key, point) for key, point in zip(keys, points, strict=True) if store.get(key) is None]
    done = len(points) - len(missing)
    told(done, len(points), None)
    lost: dict[str, Figures] = {}
    for key, point, figures in _measured(missing, contents, scheduler, jobs):
        if isinstance(figures, BaseException):  # a worker died, say: that is tried again the next time
            lost[key] = {"error": f"{type(figures).__name__}: {figures}"}
        else:
            store.put(key, point, figures)
        done += 1
        told(done, len(points), point)
    return [store.get(key) or lost[key] for key in keys]


def _measured(
    missing: Sequence[tuple[str, Point]], contents: dict[Path, bytes], scheduler: str | None, jobs: int
) -> Iterator[tuple[str, Point, Figures | BaseException]]:
    """Points as they end, with their figures, or the exception instead."""
    if not missing:
        return
    if scheduler is None and jobs == 1:
        for key, point in missing:
            yield key, point, measure(point, contents[_file(point)])
        return
    from dask.distributed import Client, LocalCluster, as_completed

    with contextlib.ExitStack() as stack:
        if scheduler is None:
            count = min(jobs, len(missing))
            cluster = stack.enter_context(
                LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR")
            )
            client = stack.enter_context(Client(cluster))
        else:
            try:
                client = stack.enter_context(Client(scheduler, timeout=ANSWER))
            except (OSError, ValueError) as error:
                raise SweepError(f"no Dask scheduler answers at {scheduler!r}: {error}") from None
        shipped = {path: client.scatter(raw, broadcast=True) for path, raw in contents.items()}
        tasks = {
            client.submit(measure, point, shipped[_file(point)], key=f"{key}-{point.number}", pure=False): (key, point)
            for key, point in missing
        }
        for task in as_completed(tasks):
            key, point = tasks[task]
            failure = task.exception()
            yield key, point, task.result() if failure is None else failure


def _file(point: Point) -> Path:
    path = point.model or point.scenario
    assert path is not None
    return path
