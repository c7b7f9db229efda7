"""``caesura bench modelspeed``: how fast the fast model is, on the machine that runs it.

Seconds are those of one processor in one inference by itself, in a process of its own that holds nothing but the
model: the image was compiled before, read from a file, checked and loaded; the program is analysed within the time. On
a machine that does nothing else they are wall time, which the details tell as well.
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import caesura
from benchmarks.figures import Figure, Measured
from benchmarks.lab import Lab
from benchmarks.rows import Target
from benchmarks.workloads import inputs, workload
from compiler import golden
from compiler.backend.options import Options
from hw.contract.params import SocParams

NETWORK, SECOND = "resnet50", "squeezenet"
_seconds = partial(Target, unit="CPU s", at_most=True)


def figures() -> list[Figure]:
    """All rows, in the order of the report."""
    return [
        Figure("resnet50_timing_only", _seconds(2, 0.5), partial(_time, what="timing")),
        Figure("resnet50_with_data", _seconds(20, 8), _data),
        Figure("two_networks_timing_only", _seconds(4, 1), partial(_time, what="pair")),
        Figure("retiming", Target(20, 100, "times as fast"), _retiming),
        Figure("memory", Target(300, 150, "MB", at_most=True), _memory),
        Figure("trace_beside_it", Target(10, 10, "%", at_most=True), _trace),
        Figure("cycles_per_second", Target(4e6, 16e6, "cycles/s"), _rate),
    ]


def _time(lab: Lab, what: str) -> Measured:
    report = _run(lab.params, what)
    return Measured(report["seconds"], True, report)


def _data(lab: Lab) -> Measured:
    lab.progress.task(f"modelspeed: {NETWORK} with data")
    report = _run(lab.params, "data")
    expected = golden.golden_outputs(workload(NETWORK), inputs(NETWORK))
    equal = all(np.array_equal(value, np.array(report["outputs"][name])) for name, value in expected.items())
    detail = {name: value for name, value in report.items() if name != "outputs"}
    detail["outputs"] = "all outputs equal onnxruntime's" if equal else "outputs differ from onnxruntime's"
    return Measured(report["seconds"], equal, detail)


def _retiming(lab: Lab) -> Measured:
    """One changed parameter against a fresh run that only times; the run was recorded before."""
    fresh, report = _run(lab.params, "timing"), _run(lab.params, "retime")
    return Measured(fresh["seconds"] / report["seconds"], True, report | {"fresh_seconds": fresh["seconds"]})


def _memory(lab: Lab) -> Measured:
    report = _run(lab.params, "timing")
    return Measured(report["megabytes"], True, {"counted": "most resident memory of the process that only times"})


def _trace(lab: Lab) -> Measured:
    plain, traced = _run(lab.params, "timing"), _run(lab.params, "trace")
    return Measured(
        100 * (traced["seconds"] / plain["seconds"] - 1),
        True,
        {"seconds": traced["seconds"], "without": plain["seconds"]},
    )


def _rate(lab: Lab) -> Measured:
    report = _run(lab.params, "timing")
    return Measured(report["simulated_cycles"] / report["seconds"], True, report)


@cache
def _images(params: SocParams) -> tempfile.TemporaryDirectory:
    """Compiled images in files: both networks for all engines, and each for half of LV2."""
    folder = tempfile.TemporaryDirectory(prefix="caesura-modelspeed-")
    half = Options(lv2_limit=params.lv2_bytes // 2)
    for name in (NETWORK, SECOND):
        image = caesura.compile(workload(name), params)
        Path(folder.name, f"{name}.cimg").write_bytes(image.to_bytes())
        shared = caesura.compile(workload(name), params, engines=1, options=half)
        Path(folder.name, f"{name}_half.cimg").write_bytes(shared.to_bytes())
    (value,) = inputs(NETWORK).values()
    np.save(Path(folder.name, "input.npy"), value)
    return folder


@cache
def _run(params: SocParams, what: str) -> dict[str, Any]:
    """What ``benchmarks.modelspeed_process`` reports, in a process of its own."""
    folder = _images(params)
    command = [sys.executable, "-m", "benchmarks.modelspeed_process", what, folder.name]
    root = Path(__file__).parents[1]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=one_thread)
    if done.returncode:
        raise RuntimeError(f"benchmarks.modelspeed_process {what} failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)
