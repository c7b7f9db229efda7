"""Sweeps: every point once, the same table however often they were stopped, errors in their own rows."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dask.distributed import LocalCluster
from rich.console import Console

from caesura.comma_separated import to_csv
from caesura.sweep import run
from caesura.sweep.measure import measure
from caesura.sweep.run import run_sweep
from caesura.sweep.spec import SweepError, load_sweep
from caesura.sweep.store import Store
from caesura.sweep.table import rows, to_table
from tests.support.networks import DIGITS
from tests.support.web_pages import loads

EXAMPLE = Path(__file__).parents[3] / "examples" / "sweeps" / "scratchpads.toml"
SPEC = f"""
name = "a test"
models = ["{DIGITS}"]
[machine]
preset = "tiny"
pes = [2, 4]
lv1_bytes = ["8KiB", "16KiB"]
[options]
order = "source"
"""


def write(folder, text=SPEC):
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def silent(done, whole, point):
    pass


def test_points_in_the_order_of_the_file(tmp_path):
    _, points = load_sweep(write(tmp_path))
    assert [tuple(point.labels.values()) for point in points] == [
        (2, "8KiB", "digits"), (2, "16KiB", "digits"), (4, "8KiB", "digits"), (4, "16KiB", "digits"),
    ]  # fmt: skip
    assert [point.params.pes for point in points] == [2, 2, 4, 4]


def test_a_sweep_that_goes_on_runs_only_what_is_missing(tmp_path):
    _, points = load_sweep(write(tmp_path))
    ran = []

    def told(done, whole, point):
        ran.append(point and point.number)

    whole = run_sweep(points, Store(tmp_path / "a"), jobs=1, told=silent)
    first = run_sweep(points[:2], Store(tmp_path / "b"), jobs=1, told=silent)
    with (tmp_path / "b" / "points.jsonl").open("a") as file:
        file.write('{"key": "cut o')  # killed while it wrote
    again = run_sweep(points, Store(tmp_path / "b"), jobs=1, told=told)
    assert ran == [None, 2, 3] and again == whole and again[:2] == first
    assert run_sweep(points, Store(tmp_path / "b"), jobs=1, told=silent) == whole
    assert len({one["cycles"] for one in whole}) > 1


def test_a_point_that_fails_is_a_row(tmp_path, capsys):
    _, points = load_sweep(write(tmp_path, SPEC.replace('["8KiB", "16KiB"]', '["4KiB", "8KiB"]') + "lv2_limit = 512\n"))
    figures = run_sweep(points[:2], Store(tmp_path), jobs=1, told=silent)
    found = rows(points[:2], figures)
    assert all("lv2_limit" in row["error"] for row in found)
    assert to_csv(found).splitlines()[0] == "pes,lv1_bytes,model,error"
    Console(width=80).print(to_table("title", points[:2], found))
    assert "pes=2, lv1_bytes=4KiB" in capsys.readouterr().out


def test_scenarios_under_policies(tmp_path):
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[[models.a.layers]]\nload = 1\ncompute = 2\n[[streams]]\nname = "a"\nstages = [{ model = "a" }]\n'
        'arrivals = { kind = "periodic", period = 5, count = 4 }\n'
    )
    text = 'backend = "synthetic"\nscenarios = ["s.toml"]\npolicies = ["fcfs", "idle_time", "unknown"]\n'
    _, points = load_sweep(write(tmp_path, text))
    figures = [measure(point, b"") for point in points]
    assert [one.get("antt") for one in figures] == [1.0, 1.0, None] and "unknown" in figures[2]["error"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("models", "nothing"), "nothing: is not a known key"),
        ((f'models = ["{DIGITS}"]', ""), "must have either models or scenarios"),
        ((str(DIGITS), "gone.onnx"), "there is no file"),
        (('preset = "tiny"', 'preset = "huge"'), "machine: .*huge"),
        (("pes =", "pess ="), "machine: no parameter named 'pess'"),
        (("[2, 4]", "[]"), "machine.pes"),
        (("[2, 4]", f"{list(range(1, 60_000))}"), "119,998 points, 100,000 at most"),
        (('"a test"', '"a test"\nbackend = "synthetic"'), "backend is 'synthetic'"),
        (("name =", "name ="[:-1]), "not a TOML file"),
    ],
)  # fmt: skip
def test_files_that_make_no_sense_are_refused(tmp_path, change, message):
    with pytest.raises(SweepError, match=message):
        load_sweep(write(tmp_path, SPEC.replace(*change)))


def test_an_unknown_option_is_the_points_error(tmp_path):
    _, points = load_sweep(write(tmp_path, SPEC.replace("order =", "ordre =")))
    assert "'ordre' is no option of the compiler" in measure(points[0], DIGITS.read_bytes())["error"]


@pytest.mark.slow
def test_killed_and_started_again(tmp_path):
    """On two processes, by the command; the table is that of a sweep in one go."""
    spec = write(tmp_path, SPEC.replace("[2, 4]", "[2, 4, 8]"))
    command = [sys.executable, "-m", "caesura", "sweep", str(spec), "--json"]
    known = tmp_path / "killed" / "points.jsonl"
    running = subprocess.Popen(
        [*command, "-o", str(tmp_path / "killed")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    for _ in range(1200):
        if known.exists() and known.read_text().count("\n") >= 2:
            break
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert known.read_text().count("\n") >= 2
    tables = [
        subprocess.run([*command, "--jobs", jobs, "-o", str(tmp_path / folder)], check=True, capture_output=True)
        for folder, jobs in (("killed", "2"), ("whole", "1"))
    ]
    assert "known:" in tables[0].stderr.decode() and b"0 of 6 points known\n" not in tables[0].stderr
    found = [json.loads(one.stdout) for one in tables]
    assert found[0] == found[1] and len(found[0]) == 6
    page = (tmp_path / "killed" / "picture.html").read_text()
    assert len(page) < 5_000_000 and not loads(page)


def test_no_scheduler_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "ANSWER", "1s")
    _, points = load_sweep(write(tmp_path))
    with pytest.raises(SweepError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:9'"):
        run_sweep(points, Store(tmp_path), scheduler="tcp://127.0.0.1:9", jobs=1, told=silent)


def test_on_a_scheduler(tmp_path):
    """A scheduler and a worker that were there before."""
    _, points = load_sweep(write(tmp_path))
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, host="127.0.0.1", protocol="tcp://", dashboard_address=None
    ) as cluster:
        figures = run_sweep(points[:1], Store(tmp_path), scheduler=cluster.scheduler_address, jobs=1, told=silent)
    assert figures == [measure(points[0], DIGITS.read_bytes())]


def test_numbers_are_whole_at_80_columns(tmp_path, capsys):
    _, points = load_sweep(write(tmp_path, SPEC.replace("pes =", "dram_latency = [20, 100]\npes =")))
    figures = [{"cycles": 12_345_678, "utilisation": 0.987} for _ in points]
    found = rows(points, figures)
    for row in found:
        row["model"] = "a name that is much longer than there is room for"
    Console(width=80).print(to_table("title", points, found))
    lines = capsys.readouterr().out.splitlines()
    assert sum("12,345,678" in line and "98.7%" in line for line in lines) == len(points) == 8
    assert all(len(line) <= 80 for line in lines) and "…" in lines[-2]


def test_figures_do_not_hide_labels(tmp_path):
    _, points = load_sweep(write(tmp_path, SPEC.replace("lv1_bytes", "lv2_bytes").replace("8KiB", "64KiB")))
    found = rows(points, [measure(points[0], DIGITS.read_bytes())] * len(points))
    assert [row["lv2_bytes"] for row in found] == ["64KiB", "16KiB"] * 2 and found[0]["lv2_used_bytes"] > 0


def test_the_example_has_24_machines():
    _, points = load_sweep(EXAMPLE)
    assert len({point.params.digest() for point in points}) == 12 and len(points) == 24  # DRAM latency is no hardware
