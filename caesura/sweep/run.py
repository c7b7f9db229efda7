"""Runs the points of a sweep, as many at a time as there are cores, or on the workers of a Dask scheduler.

What it has found so far it keeps in a file that survives being killed: a line of JSON for each point. Its processes
are told what to do through pipes: nothing listens, so that nobody else can have something run by them. They end with
the process that started them.
"""

import contextlib
import hashlib
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from caesura.scenario.arrivals import TraceSpec
from caesura.scenario.file_table import ScenarioError
from caesura.scenario.model_files import model_file
from caesura.scenario.policies import policy_file
from caesura.scenario.schema import Scenario, load_scenario
from caesura.sweep.measure import measure
from caesura.sweep.spec import Point, SweepError
from sim import sources_digest
from sim.host import all_tensors

_SOURCES = ("compiler", "hw", "sim", "sw")  #: with caesura, all code that figures come from
_CAESURA = Path(__file__).parents[2]  #: where caesura lies: a wheel has the others elsewhere

ANSWER = "10s"  #: time in which a scheduler answers

Figures = dict[str, Any]
Task = tuple[Point, bytes]  #: what :func:`measure` is given
Told = Callable[[int, int, Point | None], None]  #: called with points done, all points, and the one that has just ended
Measured = Iterator[tuple[Point, Figures | BaseException]]  #: points as they end, or the exception instead of figures


class Store:
    """Keeps figures by point in ``folder``. Points are known by what they run, not by their place in a sweep: a sweep
    that has grown keeps what was measured. A line that was cut off when a sweep was killed does not count."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "points.jsonl"
        self._known: dict[str, Figures] = {}
        text = self._path.read_text(errors="replace") if self._path.is_file() else ""
        self._cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                if isinstance(entry["figures"], dict):
                    self._known[entry["key"]] = entry["figures"]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue

    def get(self, key: str) -> Figures | None:
        """Return the figures of a point, or None if it has not been run."""
        return self._known.get(key)

    def put(self, key: str, point: Point, figures: Figures) -> None:
        """Keep the figures of a point, on disk when this returns."""
        self._known[key] = figures
        line = json.dumps({"key": key, "labels": point.labels, "figures": figures})
        with self._path.open("a") as file:
            file.write("\n" * self._cut + line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._cut = False


def key_of(point: Point, content: str, version: str) -> str:
    """Return what tells a point's figures from others: machine, options, policy, ``content`` (a digest of all files
    that it depends on), and the ``version`` of what runs it."""
    what = {
        "version": version,
        "backend": point.backend,
        "params": None if point.params is None else {**point.params.to_dict(), "name": ""},
        "content": content,
        "options": point.options,
        "fallback": point.fallback,
        "policy": (point.policy, point.placement),
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


def run_sweep(
    points: Sequence[Point], store: Store, *, scheduler: str | None = None, jobs: int, told: Told
) -> list[Figures]:
    """Return the figures of all ``points``, in their order; what ``store`` knows is not run again. ``scheduler``: the
    address of a Dask scheduler; otherwise ``jobs`` processes of this computer. Raises :class:`SweepError` if no
    scheduler answers."""
    contents = {path: path.read_bytes() for path in {point.model for point in points} if path}
    digests = _Digests(contents)
    sources = sources_digest(*_SOURCES) + sources_digest("caesura", root=_CAESURA)
    keys = [key_of(point, digests.of(point), sources) for point in points]
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


class ProcessDied(RuntimeError):
    """Says that the process that ran a point ended in the middle of it."""


def in_processes(tasks: Sequence[Task], count: int) -> Iterator[tuple[Point, Figures | BaseException]]:
    """Yield points as they end, ``count`` at a time, with their figures, or the exception instead. When a process dies,
    those that ran at that time run again one by one, so that it is known which one it died of."""
    left = deque(tasks)
    while left:
        for task in (yield from _until_one_dies(left, count)):
            if (yield from _until_one_dies(deque([task]), 1)):
                yield task[0], ProcessDied("its process ended in the middle of it; is there enough memory?")


def _until_one_dies(
    left: deque[Task], count: int
) -> Generator[tuple[Point, Figures | BaseException], None, list[Task]]:
    """Run what is ``left``; return the points that ran when a process died."""
    running: dict[Future[dict[str, Any]], Task] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(count, len(left)), mp_context=context, initializer=_end_with_parent) as pool:
        while left or running:
            try:
                while left and len(running) < count:
                    running[pool.submit(measure, *left[0])] = left[0]
                    left.popleft()
            except BrokenProcessPool:
                return list(running.values())
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                failure = future.exception()
                if isinstance(failure, BrokenProcessPool):
                    return list(running.values())
                point, _ = running.pop(future)
                yield point, future.result() if failure is None else failure
    return []


def _end_with_parent() -> None:
    """Have this process end with the one that started it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # without a traceback
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinel: int) -> None:
        multiprocessing.connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()


def dependencies_digest(path: Path, policy: str, backend: str) -> str:
    """Return a digest of the scenario in ``path`` with all that it names: models and their data files, arrival times,
    and the file of a ``policy`` of one's own. What cannot be read counts as missing: to run the scenario tells why."""
    digest = hashlib.sha256(_content(path))
    with contextlib.suppress(ScenarioError):
        for file in _files(load_scenario(path), path.parent, policy, backend):
            digest.update(_content(file))
    return digest.hexdigest()


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return b"missing"


def _files(scenario: Scenario, folder: Path, policy: str, backend: str) -> Iterator[Path]:
    """Yield the files that the scenario names, those of models only where ``backend`` runs them."""
    for stream in scenario.streams:
        if isinstance(stream.arrivals, TraceSpec) and stream.arrivals.file is not None:
            yield folder / stream.arrivals.file
    if (mine := policy_file(policy)) is not None:
        yield mine
    if backend == "synthetic":
        return
    for name in dict.fromkeys(s.model for stream in scenario.streams for s in stream.stages if s.model is not None):
        spec = scenario.models[name]
        model = model_file(name, spec, folder)
        yield from (model, *(folder / file for file in (*spec.inputs, *([spec.plan] if spec.plan else ()))))
        yield from _data_files(model)


def _data_files(model: Path) -> list[Path]:
    """Return the files that hold tensors of a model."""
    try:
        tensors = list(all_tensors(onnx.load(str(model), load_external_data=False)))
    except (OSError, ValueError, DecodeError):
        return []
    places = (entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location")
    return [model.parent / place for place in dict.fromkeys(places)]
