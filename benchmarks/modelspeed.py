"""``caesura bench modelspeed``: how fast the fast model is, on the machine that runs it.

Seconds are those of one processor in one inference by itself, in a process of its own that holds nothing but the
model: the image was compiled before, read from a file, checked and loaded; the program is analysed within the time. A
cold start is all that ``caesura run`` does with the image. On a machine that does nothing else seconds are wall time,
which the details tell as well.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import caesura
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import ALONE, Lab
from benchmarks.workloads import inputs, workload
from compiler import Options, golden
from hw.contract.params import SocParams

_ROOT = Path(__file__).parents[1]
NETWORK, SECOND = "resnet50", "squeezenet"
_TURNS = 7
_seconds = partial(Target, unit="CPU s", at_most=True)


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    return [
        Figure("resnet50_timing_only", _seconds(2, 0.5), partial(_time, what="timing")),
        Figure("resnet50_with_data", _seconds(20, 8), _data),
        Figure("two_networks_timing_only", _seconds(4, 1), partial(_time, what="pair")),
        Figure("cold_start", _seconds(25, 10), _cold_start),
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


def _cold_start(lab: Lab) -> Measured:
    """``caesura run`` of an image, with data, from the start of its process to its end."""
    lab.progress.task(f"modelspeed: caesura run of {NETWORK}")
    folder = Path(_images(lab.params).name)
    command = [sys.executable, "-m", "caesura", "run", str(folder / f"{NETWORK}.cimg"), "--backend", "model", "--json"]
    began = time.perf_counter()
    with (folder / "run.json").open("w") as report, (folder / "run.err").open("w") as errors:
        process = subprocess.Popen(command, stdout=report, stderr=errors, cwd=_ROOT, env=_one_thread())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"caesura run failed: {(folder / 'run.err').read_text().strip()[-500:]}")
    seconds, wall = used.ru_utime + used.ru_stime, time.perf_counter() - began
    return Measured(round(seconds, 3), True, {"wall": round(wall, 3), "command": "caesura run, image ready"})


def _memory(lab: Lab) -> Measured:
    report = _run(lab.params, "timing")
    return Measured(report["megabytes"], True, {"counted": "most resident memory of the process that only times"})


def _trace(lab: Lab) -> Measured:
    """In turns, since what a trace takes is less than what a computer's mood does."""
    turns = [(_measure(lab.params, "timing"), _measure(lab.params, "trace")) for _ in range(_TURNS)]
    plain, traced = ([report["seconds"] for report in reports] for reports in zip(*turns, strict=True))
    value = 100 * (median(with_it / without for without, with_it in zip(plain, traced, strict=True)) - 1)
    return Measured(value, True, {"seconds": traced, "without": plain, "counted": f"median of {_TURNS} turns"})


def _rate(lab: Lab) -> Measured:
    report = _run(lab.params, "timing")
    return Measured(report["simulated_cycles"] / report["seconds"], True, report)


@cache
def _images(params: SocParams) -> tempfile.TemporaryDirectory:
    """Compiled images in files: both networks for all engines, and each for half of LV2."""
    folder = tempfile.TemporaryDirectory(prefix="caesura-modelspeed-")
    half = Options(lv2_limit=params.lv2_bytes // 2)
    for name in (NETWORK, SECOND):
        image = caesura.compile(workload(name), params, options=ALONE)
        Path(folder.name, f"{name}.cimg").write_bytes(image.to_bytes())
        shared = caesura.compile(workload(name), params, engines=1, options=half)
        Path(folder.name, f"{name}_half.cimg").write_bytes(shared.to_bytes())
    (value,) = inputs(NETWORK).values()
    np.save(Path(folder.name, "input.npy"), value)
    return folder


@cache
def _run(params: SocParams, what: str) -> dict[str, Any]:
    """Return what is measured once, for all rows."""
    return _measure(params, what)


def _measure(params: SocParams, what: str) -> dict[str, Any]:
    """Return what ``benchmarks.modelspeed_process`` reports, in a process of its own."""
    folder = _images(params)
    command = [sys.executable, "-m", "benchmarks.modelspeed_process", what, folder.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT, env=_one_thread())
    if done.returncode:
        raise RuntimeError(f"benchmarks.modelspeed_process {what} failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def _one_thread() -> dict[str, str]:
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
