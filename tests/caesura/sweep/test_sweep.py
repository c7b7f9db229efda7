"""Sweeps: every point once, the same table however often they were stopped, errors in their own rows."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import psutil
import pytest
from dask.distributed import LocalCluster
from rich.console import Console

from caesura.commands.sweep import sweep_table, to_terminal
from caesura.sweep import run
from caesura.sweep.front import pareto_front
from caesura.sweep.measure import measure
from caesura.sweep.picture import by_effect, write_picture
from caesura.sweep.run import Store, dependencies_digest, run_sweep
from caesura.sweep.spec import SweepError, load_sweep
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
    table = sweep_table("title", points[:2], figures)
    assert all("lv2_limit" in row["error"] for row in table.fields())
    assert table.csv().splitlines()[0] == "pes,lv1_bytes,model,error"
    Console(width=80).print(to_terminal(table, points[:2]))
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
        (("[2, 4]", f"{list(range(1, 100))}\nengines = {list(range(1, 9999))}\nrows = {list(range(1, 9999))}"),
         "19,792,080,792 points, 100,000 at most"),
        (("[2, 4]", "[2, 4]\n" + "\n".join(f"lv{i}_bytes = {list(range(1, 99))}" for i in range(3, 9))),
         "3,543,369,523,456 points, 100,000 at most"),
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


SCENARIO = """
name = "s"
[machine]
preset = "tiny"
[models.a]
onnx = "net/model.onnx"
inputs = "inputs.npz"
outputs = "out"
[[streams]]
name = "a"
stages = [{ model = "a" }]
arrivals = { kind = "trace", file = "times.txt" }
"""
SCENARIOS = 'scenarios = ["s.toml"]\npolicies = ["fcfs"]\n'


def scenario_of_files(folder):
    """A sweep of a scenario whose model has its data in a file of its own."""
    (folder / "net").mkdir()
    options = {"save_as_external_data": True, "location": "weights", "size_threshold": 0}
    onnx.save(onnx.load(DIGITS), folder / "net" / "model.onnx", **options)
    (folder / "times.txt").write_text("0\n")
    shutil.copy(DIGITS.parent / "digits_samples.npz", folder / "inputs.npz")
    (folder / "s.toml").write_text(SCENARIO)
    return load_sweep(write(folder, SCENARIOS))[1]


def test_figures_of_a_scenario_are_those_of_its_files(tmp_path):
    points, ran = scenario_of_files(tmp_path), []

    def again():
        return run_sweep(points, Store(tmp_path), jobs=1, told=lambda done, whole, point: ran.append(point))

    first = again()
    assert not (tmp_path / "out").exists(), "points run side by side, and would write the same files"
    assert first[0].get("makespan") and len(ran) == 2 and again() == first and len(ran) == 3
    model = onnx.load(tmp_path / "net" / "model.onnx")
    model.graph.node.append(model.graph.node[-1])
    model.graph.node[-1].name, model.graph.node[-1].output[0] = "more", "unused"
    onnx.save(model, tmp_path / "net" / "model.onnx")
    again()
    assert ran[3:] == [None, points[0]], "the changed model was not run"


def test_a_scenario_is_known_by_all_that_it_names(tmp_path):
    (point,) = scenario_of_files(tmp_path)
    (tmp_path / "own.py").write_text("")
    policy = f"{tmp_path / 'own.py'}:Own"
    found = [dependencies_digest(point.scenario, policy, "model")]
    for name in ("s.toml", "net/model.onnx", "net/weights", "times.txt", "own.py", "inputs.npz"):
        raw = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(raw + b"#\n" if name.endswith(("py", "toml", "txt")) else raw[:-1] + b"x")
        found.append(dependencies_digest(point.scenario, policy, "model"))
    (tmp_path / "net" / "weights").unlink()
    found.append(dependencies_digest(point.scenario, policy, "model"))
    assert len(set(found)) == len(found) == 8
    other = dependencies_digest(point.scenario, policy, "synthetic")
    (tmp_path / "net" / "model.onnx").unlink()
    assert dependencies_digest(point.scenario, policy, "synthetic") == other  # it runs no models


def test_a_file_that_changes_while_a_sweep_runs(tmp_path, monkeypatch):
    points = scenario_of_files(tmp_path)

    def changing(point, content):
        (tmp_path / "times.txt").write_text("5\n")
        return measure(point, content)

    monkeypatch.setattr(run, "measure", changing)
    figures = run_sweep(points, Store(tmp_path), jobs=1, told=silent)
    assert "changed while the sweep ran" in figures[0]["error"] and not Store(tmp_path)._known


def of_policies(folder, *policies):
    """A sweep of a scenario that takes no time."""
    (folder / "s.toml").write_text(
        'name = "s"\n[[models.a.layers]]\nload = 1\ncompute = 2\n[[streams]]\nname = "a"\nstages = [{ model = "a" }]\n'
        'arrivals = { kind = "periodic", period = 5, count = 4 }\n'
    )
    text = f'backend = "synthetic"\nscenarios = ["s.toml"]\npolicies = {list(policies)}\n'
    return load_sweep(write(folder, text))[1]


def test_nothing_listens_while_a_sweep_runs(tmp_path):
    """Whoever reached a scheduler could have code run."""
    seen = []

    def places():
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        found = {one for process in processes for one in process.net_connections("all")}
        return len(processes), {
            one for one in found if one.status == psutil.CONN_LISTEN or (one.laddr and not one.raddr)
        }

    _, before = places()
    points = of_policies(tmp_path, "fcfs", "idle_time")
    figures = run_sweep(points, Store(tmp_path), jobs=2, told=lambda *_: seen.append(places()))
    assert all(one["antt"] for one in figures)
    assert max(count for count, _ in seen) >= 3, "there were no processes to look at"
    assert not {one for _, found in seen for one in found} - before


def test_a_point_that_kills_its_process_is_a_row(tmp_path):
    (tmp_path / "deadly.py").write_text("import os\nos._exit(3)\n")
    points = of_policies(tmp_path, "fcfs", f"{tmp_path / 'deadly.py'}:Deadly")
    figures = run_sweep(points, Store(tmp_path), jobs=2, told=silent)
    assert [one.get("antt") for one in figures] == [1.0, None]
    assert figures[1]["error"].startswith("ProcessDied: its process ended")
    assert len(Store(tmp_path)._known) == 1, "it is tried again the next time"


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(tmp_path):
    """Killed as by a lack of memory, when it can tell nobody."""
    write(tmp_path)
    program = (
        "import sys, os\nfrom tests.caesura.sweep.test_sweep import *\n"
        "if __name__ == '__main__':\n"
        f"    points = load_sweep(Path({str(tmp_path / 'sweep.toml')!r}))[1]\n"
        "    def told(done, whole, point):\n"
        "        if done:\n"
        "            print(*(one.pid for one in psutil.Process().children()), flush=True)\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        f"    run_sweep(points, Store(Path({str(tmp_path)!r})), jobs=2, told=told)\n"
    )
    (tmp_path / "killed.py").write_text(program)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "killed.py")], stdout=subprocess.PIPE, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    pids = list(map(int, done.stdout.split()))
    assert len(pids) >= 2
    end = time.monotonic() + 20
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


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
    table = sweep_table("title", points, figures)
    for row in table.rows:
        row["model"] = "a name that is much longer than there is room for"
    Console(width=80).print(to_terminal(table, points))
    lines = capsys.readouterr().out.splitlines()
    assert sum("12,345,678" in line and "98.7%" in line for line in lines) == len(points) == 8
    assert all(len(line) <= 80 for line in lines) and "…" in lines[-2]


def test_figures_do_not_hide_labels(tmp_path):
    _, points = load_sweep(write(tmp_path, SPEC.replace("lv1_bytes", "lv2_bytes").replace("8KiB", "64KiB")))
    found = sweep_table("", points, [measure(points[0], DIGITS.read_bytes())] * len(points)).fields()
    assert [row["lv2_bytes"] for row in found] == ["64KiB", "16KiB"] * 2 and found[0]["lv2_used_bytes"] > 0


def test_workloads_are_models_by_name(tmp_path):
    text = SPEC.replace(f'models = ["{DIGITS}"]', 'workloads = ["no_such"]')
    with pytest.raises(SweepError, match=r"sweep.toml: workloads: .*no_such"):
        load_sweep(write(tmp_path, text))
    _, points = load_sweep(EXAMPLE.with_name("mobilenet.toml"))
    assert len(points) == 36 and {point.labels["model"] for point in points} == {"mobilenetv2"}
    assert points[0].model.is_file() and len({point.params.digest() for point in points}) == 12


def test_the_front_has_what_nothing_beats():
    def row(model, cycles, area, dram=16.0):
        return {"model": model, "cycles": cycles, "area": area, "dram_bytes_per_cycle": dram}

    rows = [
        row("a", 10, 5), row("a", 5, 10), row("a", 10, 6), row("a", 10, 6, 8.0), row("a", 10, 5), row("b", 99, 99),
        {"model": "a", "error": "does not fit"},
    ]  # fmt: skip
    assert pareto_front(rows) == [True, True, False, True, True, True, False]
    served = [{"scenario": "s", "antt": antt, "stp": stp} for antt, stp in ((1.0, 2.0), (1.0, 1.9), (0.9, 1.0))]
    assert pareto_front(served) == [True, False, True]


def test_what_matters_comes_first(tmp_path):
    rows = [
        {"pes": pes, "lv2_bytes": size, "model": "m", "cycles": 1000 // pes + (size == "64KiB")}
        for pes in (2, 4, 8)
        for size in ("64KiB", "128KiB")
    ]
    assert by_effect(rows, ["lv2_bytes", "pes", "model"], "cycles") == ["pes", "lv2_bytes"]
    for number, one in enumerate(rows):
        one |= {"area": number, "front": number % 2 == 0, "error": ""}
    write_picture(tmp_path / "p.html", "t", rows, ["pes", "lv2_bytes", "model"])
    drawn = (tmp_path / "p.html").read_text()
    assert "Pareto front" in drawn and "pes 4, lv2 bytes 64KiB" in drawn


def test_the_example_has_24_machines():
    _, points = load_sweep(EXAMPLE)
    assert len({point.params.digest() for point in points}) == 12 and len(points) == 24  # DRAM latency is no hardware
