"""``caesura bench preemption``: what stopping a long model for an urgent one costs, cycle by cycle.

A long network runs once while urgent models arrive at random times; the host's costs are at their defaults
(``hw.contract.bus.HostCosts``). One cycle counts as a nanosecond: the nominal clock is 1 GHz.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks import certificate_storms, driving, pause_after_arrival
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.switches import SEED, Interrupted, Urgent, interrupted
from benchmarks.withdrawn_pauses import withdrawn_pauses
from caesura import latency_bound
from compiler import Options
from hw.contract.params import KIB, SocParams

LONG = "resnet50"
INTERVAL = 10_000
CYCLES_PER_US = 1000
SMALL = Urgent("conv_32x14x14_64_k3_s1_p1", 256 * KIB, 280)  #: fits beside the long model
#: Wants all of LV2; it takes so long itself that it interrupts another network, where it seldom meets its like.
LARGE = Urgent("conv_256x56x56_64_k1_s1_p0", 0, 20)
DISPLACED = "mobilenetv2"
APART = 4_000  #: cycles between pauses that are withdrawn, in the mean


@dataclass
class Campaign:
    """The measured runs, each made when the first row asks for it."""

    _results: dict[tuple[int, str], Interrupted] = field(default_factory=dict)

    def of(self, lab: Lab, long: str = LONG, urgent: Urgent = SMALL) -> Interrupted:
        """Return the long model with all its switches. ``LookupError`` if none was for a single urgent model."""
        if (id(lab), long) not in self._results:
            self._results[id(lab), long] = interrupted(lab, long, Options(cancel_interval=INTERVAL), [urgent])
        result = self._results[id(lab), long]
        if not result.switches:
            raise LookupError(f"{long} was never interrupted by a single {urgent.workload}: raise its arrivals")
        return result


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    campaign = Campaign()
    rows: list[tuple[str, Target, Callable[..., Measured]]] = [
        ("points_without_pause", Target(0.1, 0.02, "%", at_most=True), _without_pause),
        ("pause_to_halted_p99", Target(20, 10, "us", at_most=True), _halting),
        ("pause_to_urgent_p99", Target(8.5, 7, "us", at_most=True), _starting),
        ("host_in_a_switch", Target(2500, 1500, "cycles", at_most=True), _host),
        ("move_time", Target(1.25, 1.05, "x", at_most=True), _move_time),
        ("bytes_dumped_median", Target(25, 5, "%", at_most=True), _bytes_dumped),
        ("slowdown_beyond", Target(5, 5, "% of an interval", at_most=True), _slowdown),
        ("bound_over_worst", Target(1.5, 1.2, "x", at_most=True), _bound),
    ]
    return [
        *(Figure(name, target, partial(measure, campaign=campaign)) for name, target, measure in rows),
        Figure("driving_schedule", Target(67, 67, "units", at_most=True), _driving_schedule),
        Figure("driving", Target(56, 56, "units", at_most=True), _driving),
        *pause_after_arrival.figures(),
        *certificate_storms.figures(),
    ]


def _without_pause(lab: Lab, campaign: Campaign) -> Measured:
    """The long model undisturbed, with points and without."""
    run, plain = campaign.of(lab), lab.run(LONG, Options(cancel_interval=0))
    extra = 100 * (run.alone - plain.stats.cycles) / plain.stats.cycles
    detail = {
        "cycles": run.alone,
        "cycles_without_points": plain.stats.cycles,
        "points": len(run.image.meta.cancel_points),
    }
    return Measured(extra, run.correct and plain.correct, detail)


def _halting(lab: Lab, campaign: Campaign) -> Measured:
    """Pause to HALTED, of all interruptions."""
    run = campaign.of(lab)
    return _p99(run, run.halting)


def _starting(lab: Lab, campaign: Campaign) -> Measured:
    """Pause to the first instruction of the urgent model, of the interruptions for a single one."""
    run = campaign.of(lab)
    return _p99(run, [switch.starting for switch in run.of(SMALL.workload)])


def _host(lab: Lab, campaign: Campaign) -> Measured:
    """Return the median of the cycles, from HALTED until everything was back, in which the engines waited for the
    host."""
    run = campaign.of(lab)
    cycles = [float(switch.host) for switch in run.of(SMALL.workload)]
    return Measured(float(np.median(cycles)), run.correct, _spread(cycles) | {"urgent": SMALL.workload})


def _p99(run: Interrupted, cycles: list[int]) -> Measured:
    times = [value / CYCLES_PER_US for value in cycles]
    return Measured(float(np.percentile(times, 99)), run.correct, _spread(times) | {"urgent": SMALL.workload})


def _move_time(lab: Lab, campaign: Campaign) -> Measured:
    """Return the cycles of all dumps and restores for an urgent model that wants all of LV2, over those that their
    bytes take at the bandwidth of the DRAM. Single ratios are in the detail: small dumps cost more, as a job takes
    hundreds of cycles to start."""
    run = campaign.of(lab, DISPLACED, LARGE)
    switches, bandwidth = run.of(LARGE.workload), lab.params.dram_bytes_per_cycle
    moved = [(s.moved_cycles, (s.dumped + s.restored) / bandwidth) for s in switches]
    ratios = [cycles / least for cycles, least in moved]
    detail = {
        "mean": round(float(np.mean(ratios)), 3),
        "long": DISPLACED,
        "urgent": LARGE.workload,
        "bytes_dumped": [switch.dumped for switch in switches],
    }
    total = sum(cycles for cycles, _ in moved) / sum(least for _, least in moved)
    return Measured(total, run.correct, _spread(ratios) | detail)


def _bytes_dumped(lab: Lab, campaign: Campaign) -> Measured:
    run, everything = campaign.of(lab), on_chip_bytes(lab.params)
    shares = [100 * switch.dumped / everything for switch in run.of(SMALL.workload)]
    return Measured(float(np.median(shares)), run.correct, _spread(shares) | {"on_chip_bytes": everything})


def _slowdown(lab: Lab, campaign: Campaign) -> Measured:
    """Return the cycles per switch that the long model lost beyond its absence: those of its run with switches, less
    those of its run alone, less, for each switch, all from HALTED of the last engine until every stopped job was queued
    again and the last restore had ended. That absence is the urgent models' own run, the dump (all from HALTED to the
    first urgent instruction) and the restore (all from the end of the last urgent job on), the host's part of both
    included.

    What is left: one engine has halted and waits for the other, the units run empty before HALTED, and the stopped jobs
    start and fill them again.
    """
    run, single = campaign.of(lab), campaign.of(lab).of(SMALL.workload)
    beyond = run.cycles - run.alone - sum(run.away)
    detail = {
        "switches": len(run.away),
        "cycles_alone": run.alone,
        "cycles_with_switches": run.cycles,
        "cycles_away": sum(run.away),
        "cycles_beyond_per_switch": round(beyond / len(run.away)),
        "dump_and_restore_median": float(np.median([switch.overhead for switch in single])),
        "of_which_data_moves_median": float(np.median([switch.moved_cycles for switch in single])),
        "of_which_host_median": float(np.median([switch.host for switch in single])),
    }
    return Measured(100 * beyond / len(run.away) / INTERVAL, run.correct, detail)


def _bound(lab: Lab, campaign: Campaign) -> Measured:
    """Return the static bound of pause to HALTED over the worst case seen; a case above the bound is an error.

    Beside the switches, pauses of a run of its own count, which are withdrawn: as they cost little, there are many.
    """
    run = campaign.of(lab)
    with withdrawn_pauses(lab.device.driver, run.image, SEED, APART) as halts:
        again = lab.run_image(LONG, run.image)
    bound, worst = latency_bound(run.image), max([*run.halting, *halts.cycles])
    detail = {
        "bound_cycles": bound.halt, "worst_seen_cycles": worst, "switches": len(run.halting),
        "worst_of_switches": max(run.halting), "withdrawn_pauses": len(halts.cycles), "beyond_bound": halts.beyond,
    }  # fmt: skip
    held = worst <= bound.halt and not halts.beyond
    return Measured(bound.halt / worst, run.correct and again.correct and held, detail)


def _driving_schedule(lab: Lab) -> Measured:
    """Return the worked example as a pure schedule, frames back to back: planning of a frame in steady state."""
    ways = {way: driving.schedule(way).latencies for way in driving.WAYS}
    detail = {"steady_state": {way: frames[-1] for way, frames in ways.items()}, "frames": ways}
    as_published = [frames[-1] for frames in ways.values()] == [55, 80, 67]
    return Measured(ways["with preemption"][-1], as_published, detail)


def _driving(lab: Lab) -> Measured:
    """The same with two models on the device, perception alone taking 30 units, and dumps of what is live: the first
    frame, whose own perception nothing interrupts. In steady state perception also waits for the planning of the frame
    before, so that one accelerator cannot be below 30 + 10 + 15 + 10."""
    prepared = driving.prepare(lab.device.driver)
    runs = {way: driving.run(prepared, way) for way in driving.WAYS}
    frames = {way: [round(units, 2) for units in run.schedule.latencies] for way, run in runs.items()}
    detail = {
        "frames": frames,
        "steady_state": {way: units[-1] for way, units in frames.items()},
        "cycles_per_unit": round(prepared.unit),
        "planning_units": round(prepared.planning_units, 2),
    }
    first = runs["with preemption"].schedule.latencies[0]
    return Measured(first, all(run.equal for run in runs.values()), detail)


def on_chip_bytes(params: SocParams) -> int:
    """LV0, LV1 and LV2 of the SoC."""
    lv0 = params.pes * (params.lv0_act_bytes + params.lv0_wgt_bytes) + 4 * params.out_channels * params.lv0_acc_rows
    return params.engines * (lv0 + params.lv1_bytes) + params.lv2_bytes


def _spread(values: list[float]) -> dict[str, Any]:
    median, p99 = (round(float(np.percentile(values, q)), 3) for q in (50, 99))
    return {"switches": len(values), "median": median, "p99": p99, "max": round(max(values), 3)}
