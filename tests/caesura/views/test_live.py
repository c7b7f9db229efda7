"""What the view of a run time shows, and that looking changes nothing."""

import io
import itertools
import re

import numpy as np
import pytest
from rich.console import Console

from caesura.api import UsageError
from caesura.commands.scenario import scenario as scenario_command
from caesura.scenario import run_scenario
from caesura.views import live
from caesura.views.live import LiveView, picture
from hw.contract.params import preset
from sw.driver import Device
from sw.runtime import Mechanism, Runtime, State, take_snapshot
from tests.caesura.scenario.test_timeline import PREEMPTED
from tests.support.fake_soc import FakeSoc
from tests.support.hostile_names import NAME, SHOWN
from tests.support.preempt_images import smashing_image, walking_image
from tests.system.command import caesura_command

TINY = preset("tiny")
X = np.ones((1, 8, 8), np.float32)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(PREEMPTED)
    return path


def drawn(moment):
    console = Console(file=io.StringIO(), width=600)
    console.print(picture(moment, "x"))
    return console.file.getvalue()


def turns(look=True):
    """A run time, and a snapshot before and after each of its turns, of a long request and an urgent one."""
    device = Device(FakeSoc(TINY))
    images = walking_image(TINY, jobs=6), smashing_image(TINY)
    models = [device.load(image, tenant=name) for image, name in zip(images, ("ann", "bob"), strict=True)]
    runtime = Runtime(device, "fcfs", preemptive=True, rule=lambda situation: Mechanism.DUMP)
    for priority, model in enumerate(models):
        runtime.submit(model, X, priority=priority, arrival=device.bus.cycle + 4500 * priority)
    found = []
    while True:
        if look:
            found.append(take_snapshot(runtime))
        if all(request.done() for request in runtime.requests):
            return runtime, found
        runtime.step()


def test_a_snapshot_tells_who_runs_who_is_suspended_and_what_of_it_was_dumped():
    runtime, moments = turns()
    first, *_, last = moments
    assert [r.state for r in first.requests] == [State.WAITING] and not any(e.queued for e in first.engines)
    assert not last.requests and last.engines[0].computing > 0 and last.switches == 1
    running = next(m for m in moments if m.count(State.RUNNING) and m.engines[0].queued)
    assert running.engines[0].model == runtime.requests[0].model.name and running.requests[0].windows > 0
    suspended = [m for m in moments if m.count(State.SUSPENDED)]
    ann = [next(r for r in m.requests if r.state is State.SUSPENDED) for m in suspended]
    assert {(r.tenant, r.priority) for r in ann} == {("ann", 0)}
    moved = sum(span.bytes for span in runtime.spans() if span.kind == "dump")
    assert max(r.dumped for r in ann) == moved > 0
    assert any(
        m.count(State.SUSPENDED) and m.count(State.RUNNING) and m.engines[0].model != ann[0].model for m in moments
    )
    text = drawn(suspended[-1])
    assert "suspended" in text and "ann" in text and ann[0].model in text


def test_looking_costs_the_device_nothing():
    runtime, _ = turns()
    unseen, _ = turns(look=False)
    assert runtime.device.bus.cycle == unseen.device.bus.cycle


def test_a_scenario_is_shown_by_its_names_and_ends_as_it_would_unseen(file, monkeypatch):
    moments = []
    monkeypatch.setattr(live, "picture", lambda moment, *more: moments.append(moment) or picture(moment, *more))
    stream = io.StringIO()
    with LiveView(Console(file=stream, force_terminal=True, width=200, height=60), every=500, seconds=0) as view:
        seen = run_scenario(file, "fcfs", progress=view)
    unseen = run_scenario(file, "fcfs")
    assert seen | {"decision_us": 0} == unseen | {"decision_us": 0}  # which are of this computer
    shown = [r for m in moments for r in m.requests if r.state is State.SUSPENDED]
    assert {r.model for r in shown} == {"long"} and any(r.dumped for r in shown) and any(r.to_dump for r in shown)
    assert {e.model for m in moments for e in m.engines} - {""} == {"long", "short"}
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "1 suspended" in plain and "windows of short 131,072 (running), long 131,072 (suspended)" in plain


def test_pictures_come_by_simulated_time(file, monkeypatch):
    cycles = []
    monkeypatch.setattr(live, "picture", lambda moment, *more: cycles.append(moment.cycle) or "")
    with LiveView(Console(file=io.StringIO(), force_terminal=True), every=10_000, seconds=0) as view:
        run_scenario(file, "fcfs", progress=view)
    # Behind the scenario, each model runs alone on a device of its own.
    assert 6 <= len(cycles) < 30 and all(b - a >= 9_000 or b < a for a, b in itertools.pairwise(cycles))


def test_several_devices_are_shown_one_below_the_other(file):
    stream = io.StringIO()
    with LiveView(Console(file=stream, force_terminal=True, width=200, height=60), every=500, seconds=0) as view:
        seen = run_scenario(file, "fcfs", devices=2, progress=view)
    assert len(seen["devices"]) == 2
    last = stream.getvalue().rpartition("device 0: cycle ")[2]
    assert "device 1: cycle " in last and "1 running" in last


def test_without_a_terminal_nothing_but_the_report_is_printed(file):
    code, out, err = caesura_command("scenario", str(file), "--policy", "fcfs", "--live")
    assert code == 0 and "\x1b" not in out + err and "antt" in out
    assert [line for line in err.splitlines() if not line.startswith("models take turns: ")] == []


def test_the_synthetic_machine_has_nothing_to_show():
    with pytest.raises(UsageError, match=r"--live shows engines of a device, .*: choose a --backend"):
        scenario_command("examples/scenarios/driving.toml", live=True)


def test_names_are_text():
    device = Device(FakeSoc(TINY))
    image = walking_image(TINY, jobs=2)
    image.meta.model = NAME
    runtime = Runtime(device)
    runtime.submit(device.load(image), X)
    assert SHOWN in drawn(take_snapshot(runtime)) and NAME not in drawn(take_snapshot(runtime))


def test_of_many_requests_the_first_are_shown():
    device = Device(FakeSoc(TINY))
    model = device.load(walking_image(TINY, jobs=2))
    runtime = Runtime(device)
    for _ in range(25):
        runtime.submit(model, X)
    text = drawn(take_snapshot(runtime))
    assert "019" in text and "020" not in text and "and 5 more" in text
