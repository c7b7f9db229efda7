"""Perception and planning on the compiled RTL, scheduled in three ways.

    python -m examples.driving.demo [--preset tiny] [--trace FILE]

Exit code 1 if an output differs from that of an undisturbed run, or preemption does not shorten the latency.
"""

import argparse
import math
import sys
import time
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

import caesura
from benchmarks.driving import WAYS, FrameSchedule, FramesRun, Times, Way, Workload, prepare, run, schedule
from caesura.scenario import MARGIN
from caesura.views import preemptive_spans
from examples.driving.chart import LEGEND, chart
from sim import BACKENDS_HELP, DEFAULT_BACKEND, write_trace

_MEASURED = {
    "pause": "until perception was off the engines",
    "drain": "of that, until they had halted",
    "dump": "of what planning overwrites",
    "restore": "of the same, and reloads",
    "resume": "the host's part of coming back",
}


def latency_table(runs: dict[Way, FramesRun]) -> Table:
    """End-to-end latencies: as calculated and as measured, of the first frame and of the second."""
    table = Table(title="latency of a frame, in units", title_justify="left", header_style="bold")
    table.add_column("")
    for column in ("calculated: first", "steady", "dumps free: steady", "measured: first", "steady"):
        table.add_column(column, justify="right")
    free = Times(dump=0, restore=0)
    for way, measured in runs.items():
        columns = [*_first_two(schedule(way)), _first_two(schedule(way, free))[1], *_first_two(measured.schedule)]
        table.add_row(way, *columns)
    return table


def _first_two(result: FrameSchedule) -> list[str]:
    return [f"{latency:.1f}" for latency in result.latencies[:2]]


def cost_table(preempted: FramesRun, unit: float) -> Table:
    """What each preemption cost, from the first engine's beginning to the last one's end."""
    table = Table(title="what each preemption cost, in cycles", title_justify="left", header_style="bold")
    table.add_column("")
    pauses = sorted(span.begin for span in preempted.spans if span.kind == "pause")
    columns = [*(f"no. {number + 1}" for number in range(len(pauses))), "units at most"]
    for column in columns:
        table.add_column(column, justify="right")
    table.add_column("")
    for kind, meaning in _MEASURED.items():
        cycles = [_lasted(preempted, kind, *ends) for ends in pairwise([*pauses, math.inf])]
        table.add_row(kind, *(f"{c:,}" for c in cycles), f"{max(cycles, default=0) / unit:.2f}", meaning)
    return table


def _lasted(preempted: FramesRun, kind: str, first: float, end: float) -> int:
    """Cycles for which ``kind`` lasted on any engine, of the spans that begin in ``first`` to ``end``."""
    spans = [span for span in preempted.spans if span.kind == kind and first <= span.begin < end]
    return max(span.end for span in spans) - min(span.begin for span in spans) if spans else 0


def show(console: Console, workload: Workload, runs: dict[Way, FramesRun]) -> None:
    """Print timelines and tables."""
    console.print(LEGEND)
    last = max(slot.end for measured in runs.values() for slot in measured.schedule.slots)
    scale = max(1.0, last / (console.width - MARGIN))
    for way, measured in runs.items():
        console.print(f"\n[bold]{way}[/]")
        for line in chart(measured.schedule, scale):
            console.print(line)
    console.print()
    console.print(latency_table(runs))
    console.print(cost_table(runs["with preemption"], workload.unit))


def write(path: Path, preempted: FramesRun) -> None:
    """Write the trace of the preemptive run."""
    write_trace(path, preemptive_spans(preempted.requests, preempted.spans))


def main() -> int:
    """FramesRun the demo; returns the exit code."""
    parser = argparse.ArgumentParser(description="perception and planning on one accelerator")
    parser.add_argument("--preset", default="tiny", help="hardware parameters")
    parser.add_argument("--backend", default=DEFAULT_BACKEND, help=BACKENDS_HELP)
    parser.add_argument("--trace", type=Path, help="write a timeline of the preemptive run for Perfetto to this file")
    options = parser.parse_args()
    console = Console()
    with caesura.open(options.preset, options.backend) as device:
        start = time.monotonic()
        workload = prepare(device.driver)
        console.print(
            f"on {options.preset!r}, 1 unit = {workload.unit:,.0f} cycles: perception 30 units, "
            f"parsing 15 units of the CPU's time, planning {workload.planning_units:.1f} units"
        )
        runs = {way: run(workload, way, 2 if way == "alone" else 3) for way in WAYS}
        seconds, cycles = time.monotonic() - start, device.bus.cycle
    show(console, workload, runs)
    if options.trace:
        write(options.trace, runs["with preemption"])
        console.print(f"wrote {options.trace}: open it at https://ui.perfetto.dev")
    equal = all(one.equal for one in runs.values())
    faster = runs["with preemption"].schedule.latencies[1] < runs["without preemption"].schedule.latencies[1]
    console.print(
        f"outputs {'equal' if equal else 'DIFFER FROM'} undisturbed runs, bit for bit; "
        f"{cycles:,} cycles simulated in {seconds:.1f} s"
    )
    return 0 if equal and faster else 1


if __name__ == "__main__":
    sys.exit(main())
