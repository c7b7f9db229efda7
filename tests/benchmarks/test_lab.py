"""Runs of the benches' networks do not depend on what ran before them."""

from benchmarks.lab import Lab
from benchmarks.workloads import workload
from caesura.views import Progress
from compiler import Options, build, import_model
from hw.contract.params import preset

TINY = preset("tiny")


def test_each_run_begins_in_the_same_phase_of_the_refresh():
    image, _ = build(import_model(workload("gemm_64x64x64")), TINY, Options())
    with Progress() as progress, Lab(TINY, "model", progress) as lab:
        phases, cycles = set(), set()
        for ahead in (0, 1234, 5000):
            lab.device.bus.advance(ahead)
            run = lab.run_image("gemm_64x64x64", image)
            begun = min(job.prologue_start or job.start for job in run.stats.jobs)
            phases.add(begun % TINY.dram_refresh_interval)
            cycles.add(run.stats.cycles)
    assert len(phases) == len(cycles) == 1
