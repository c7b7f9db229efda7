"""Runs a scenario: requests of all streams, from arrival through their stages to the end, on any model executor."""

import heapq
import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path

import simpy

from caesura.scenario.arrivals import Closed, times
from caesura.scenario.file_table import MOST, ScenarioError
from caesura.scenario.lengths import length_of
from caesura.scenario.model_executor import ModelExecutor, ModelRun, Process
from caesura.scenario.outcome import CpuRun, Frame, Outcome
from caesura.scenario.schema import Scenario, StageSpec, Stream, is_endless


def serve(scenario: Scenario, executor: ModelExecutor, folder: Path) -> Outcome:
    """Serve all requests of ``scenario``. ``folder``: where its file lies, for the paths in it."""
    return _Serving(scenario, executor).run(folder)


class _Serving:
    """Runs streams, CPUs and frames of one run, as processes in the model executor's simulated time."""

    def __init__(self, scenario: Scenario, executor: ModelExecutor) -> None:
        self._scenario, self._executor = scenario, executor
        self._env, self._ticks = executor.env, executor.ticks
        self._cpus = simpy.Resource(self._env, scenario.machine.cpus)
        self._free_cpus = list(range(scenario.machine.cpus))
        self._frames: list[Frame] = []
        self._arrivals: Counter[str] = Counter()  #: of each stream
        self._cpu_runs: list[CpuRun] = []
        self._ending: list[simpy.Process] = []  #: streams that end by themselves

    def run(self, folder: Path) -> Outcome:
        streams = []
        for stream in self._scenario.streams:
            rng = random.Random(f"{self._scenario.seed} {stream.name}")
            process = self._closed if isinstance(stream.arrivals, Closed) else self._open
            arrivals = times(stream.arrivals, rng, folder)
            if not arrivals:
                raise ScenarioError(f"stream {stream.name!r}: arrivals: no request arrives: give times, or remove it")
            streams.append(self._env.process(process(stream, arrivals)))
            if not is_endless(stream):
                self._ending.append(streams[-1])
        self._executor.run(self._env.all_of(streams))
        outcome = self._executor.outcome(self._frames)
        outcome.cpu = self._cpu_runs
        return outcome

    # -- arrivals --------------------------------------------------------------------------------------------
    def _open(self, stream: Stream, arrivals: list[float]) -> Process:
        frames = []
        for arrival in arrivals:
            yield self._env.timeout(arrival * self._ticks - self._env.now)
            frames.append(self._env.process(self._frame(stream, simpy.Event(self._env))))
        yield self._env.all_of(frames)

    def _closed(self, stream: Stream, arrivals: list[float]) -> Process:
        """Run one user for each of ``arrivals``; together they send as many requests as the stream has."""
        assert isinstance(stream.arrivals, Closed)
        numbers = iter(range((stream.arrivals.count or MOST) - len(arrivals)))
        later = takewhile(lambda number: self._others_wait(), numbers) if is_endless(stream) else numbers
        yield self._env.all_of([self._env.process(self._user(stream, later, at)) for at in arrivals])

    def _others_wait(self) -> bool:
        """Return whether a stream that ends by itself has not ended."""
        return any(stream.is_alive for stream in self._ending)

    def _user(self, stream: Stream, later: Iterator[int], arrival: float) -> Process:
        """Send one request after the other from ``arrival`` on, while there are some left to be sent ``later``."""
        assert isinstance(stream.arrivals, Closed)
        frames = []
        yield self._env.timeout(arrival * self._ticks)
        while True:
            passed = simpy.Event(self._env)
            frames.append(self._env.process(self._frame(stream, passed)))
            yield passed
            if next(later, None) is None:
                break
            yield self._env.timeout(stream.arrivals.think * self._ticks)
            yield self._env.timeout(0)  # behind requests of open streams that arrive at the same time
        yield self._env.all_of(frames)

    # -- stages ----------------------------------------------------------------------------------------------
    def _frame(self, stream: Stream, passed: simpy.Event) -> Process:
        """Take a request through all its stages; ``passed`` happens when the next one of a closed loop may arrive."""
        frame = self._arrived(stream)
        waited_for = stream.arrivals.after if isinstance(stream.arrivals, Closed) else None
        runs = [self._model_run(stream, number, frame) for number in range(len(stream.stages))]
        for stage, (run, following) in zip(stream.stages, pairwise([*runs, None]), strict=True):
            if run is None:
                yield from self._compute(stream, stage, following)
                dropped = frame.drop and frame.deadline is not None and self._now() > frame.deadline
            else:
                dropped = bool((yield self._executor.submit(run)))
                while not dropped and (run := run.next_token()) is not None:
                    dropped = bool((yield self._executor.submit(run)))
            if dropped:
                frame.dropped = self._now()
                break
            if stage.name == waited_for and not passed.triggered:
                passed.succeed()
        else:
            frame.end = self._now()
        if not passed.triggered:
            passed.succeed()

    def _arrived(self, stream: Stream) -> Frame:
        now, number = self._now(), self._arrivals[stream.name]
        self._arrivals[stream.name] += 1
        deadline = None if stream.deadline is None else now + stream.deadline
        frame = Frame(stream.name, number, now, deadline, drop=stream.late == "drop")
        if stream.lengths is not None:
            frame.length = length_of(stream.lengths, self._scenario.seed, stream.name, number)
        self._frames.append(frame)
        return frame

    def _now(self) -> float:
        return self._env.now / self._ticks

    def _model_run(self, stream: Stream, number: int, frame: Frame) -> ModelRun | None:
        stage = stream.stages[number]
        if stage.model is None:
            return None
        priority = stream.priority if stage.priority is None else stage.priority
        return ModelRun(frame, stage.model, priority, number, tokens=stage.tokens or 1)

    def _compute(self, stream: Stream, stage: StageSpec, following: ModelRun | None) -> Process:
        """Do work on a CPU, in the order in which it became ready."""
        with self._cpus.request() as cpu:
            yield cpu
            number, begin = heapq.heappop(self._free_cpus), self._env.now
            duration = stage.duration * self._ticks
            if stage.announced and following is not None:
                self._executor.announce(following, duration)
            yield self._env.timeout(duration)
            heapq.heappush(self._free_cpus, number)
            start, end = begin / self._ticks, self._env.now / self._ticks
            self._cpu_runs.append(CpuRun(stream.name, stage.cpu or "", number, start, end))
