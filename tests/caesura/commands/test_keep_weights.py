"""``caesura run --keep-weights``."""

import json
import subprocess
import sys

import pytest

from benchmarks.workloads import workload


@pytest.mark.parametrize("keep", [pytest.param(False, marks=pytest.mark.slow), True])
def test_later_samples_take_less(keep):
    model = str(workload("bert_tiny_1x8"))
    command = [sys.executable, "-m", "caesura", "run", model, "--preset", "base", "--backend", "model", "--json"]
    command += ["--samples", "2", *(["--keep-weights"] if keep else [])]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    first, second = (sample["cycles"] for sample in found["samples"])
    assert (second < 0.8 * first) == keep
