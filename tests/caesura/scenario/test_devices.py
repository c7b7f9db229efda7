"""Scenarios on several devices: outputs are exact, all of them serve, and what one loses starts over on another."""

import json
from itertools import pairwise
from pathlib import Path

import onnx
import pytest

from caesura import api
from caesura.scenario import Policies, RtlRunner, ScenarioError, parse_scenario, serve
from caesura.scenario.served_model import ModelCopies, ServedModel
from hw.contract.bus import BusError
from sim.backends import MODEL
from sim.model import ModelBus
from tests.caesura.scenario.test_real_models import content, stream
from tests.support.length_nets import conv_net
from tests.system.command import caesura_command

TWO = Path("examples/scenarios/two_devices.toml")
MODELS = {"long": {"workload": "conv_32x16x16_32_k3_s1_p1"}, "short": {"workload": "gemm_1x64x64"}}


def served(*streams, models=MODELS, devices=2, policy="fcfs", **machine):
    told = content(models, *streams, devices=devices, **{"params": {}, **machine})
    found = serve(parse_scenario(told, "x.toml"), policy, MODEL, check=True)
    assert found.mismatches == [] and found.outcome.checked == sum(not run.dropped for run in found.outcome.requests)
    return found


def where(found, model):
    return [run.device for run in sorted(found.outcome.requests, key=lambda run: run.arrival) if run.model == model]


def test_two_devices_serve_twice_as_many(tmp_path):
    results, trace = {}, tmp_path / "trace.json"
    for devices in (1, 2):
        flags = ["--devices", devices, "--check", "--json", "--trace", trace, "--report", tmp_path / "page.html"]
        code, out, err = caesura_command("scenario", TWO, *flags)
        assert code == 0, err
        results[devices] = json.loads(out)
    one, two = results[1], results[2]
    assert two["checked"] == two["requests"] == 20 and two["mismatches"] == []
    assert two["makespan"] < 0.65 * one["makespan"] and two["stp"] > one["stp"] and two["antt"] < one["antt"]
    assert [device["number"] for device in two["devices"]] == [0, 1]
    assert sum(device["requests"] for device in two["devices"]) == 20
    assert all(device["served"]["digits"] and device["compute_utilisation"] > 50 for device in two["devices"])
    for kind in ("compute_utilisation", "access_utilisation"):
        assert two[kind] == pytest.approx(sum(device[kind] for device in two["devices"]) / 2)
    (only,) = one["devices"]
    assert only["served"] == {"dense": 8, "digits": 12} and only["access_utilisation"] == one["access_utilisation"]
    processes = {e["args"]["name"] for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "process_name"}
    assert {"device 0: engine 0", "device 1: engine 0", "device 1: requests"} <= processes


def test_people_read_what_each_device_served():
    for command in ("scenario", "serve"):
        code, out, err = caesura_command(command, TWO, "--chart", "--backend", MODEL)
        assert code == 0, err
        assert "d0 engine 0" in out and "d1 engine 0" in out and "dense" in out.split("served")[1]
    code, out, _ = caesura_command("serve", TWO, "--devices", 1)
    assert code == 0 and "device" not in out.replace("two devices", "")


def test_time_is_one_for_all_devices():
    """What follows a request begins when that has ended, wherever it ran and however far the other device has got."""
    cascade = {
        "name": "c",
        "stages": [{"model": "short"}, {"cpu": "parse", "duration": 700}, {"model": "short"}],
        "arrivals": {"kind": "closed", "count": 6, "think": 300},
    }
    found = served(cascade, stream("long", 0))
    runs = [run for run in found.outcome.requests if run.stream == "c"]
    assert len(runs) == 12 and {run.device for run in runs} == {1}
    alone = next(one["alone"] for one in found.result["streams"] if one["name"] == "c")
    for run, following in pairwise(runs):
        assert following.arrival == pytest.approx(run.end + (700 if run.number == following.number else 300), abs=1)
    took = [frame.turnaround for frame in found.outcome.frames if frame.stream == "c"]
    assert took == pytest.approx([alone] * 6, rel=0.1)


def test_a_second_request_does_not_wait_behind_a_long_one():
    found = served(stream("long"), stream("short", 1000, 2000, 3000))
    assert where(found, "long") == [0] and where(found, "short") == [1, 1, 1]
    loop = {**stream("short"), "arrivals": {"kind": "closed", "count": 12, "concurrency": 4}}
    twice = served(loop)
    assert sorted(where(twice, "short")) == [0] * 6 + [1] * 6
    arrivals = {frame.number: frame.arrival for frame in twice.outcome.frames}
    assert {run.number: run.arrival for run in twice.outcome.requests} == arrivals
    assert twice.models[0].copies == 2 and twice.outcome.engines == 2


def test_preemption_deadlines_and_announced_work():
    urgent = {
        "name": "urgent", "stages": [{"cpu": "parse", "duration": 20_000, "announced": True}, {"model": "short"}],
        "arrivals": {"kind": "trace", "times": [0]}, "priority": 1,
    }  # fmt: skip
    late = {"deadline": 40_000, "late": "drop"}
    found = served(
        stream("long", 0, 10, 20, 30, **late), urgent, preemption={"mechanisms": ["dump"]}, policy="idle_time"
    )
    assert found.outcome.preemptions == 1
    assert [frame.dropped is None for frame in found.outcome.frames] == [False, True, False, False, False]
    assert all(40_000 < frame.dropped < 45_000 for frame in found.outcome.frames if frame.dropped is not None)


def test_placed_layers_and_lengths(tmp_path):
    placed = served(
        stream("long", 0, 10), stream("short", 20, 30), policy="queue_time", params={"engines": 2}, placed=True,
    )  # fmt: skip
    assert placed.outcome.queues == 2 and placed.outcome.engines == 4
    assert {run.engine for run in placed.outcome.layers} > {0, 2}
    warm = {"initial_waits": [5000, 0], "engines": 2, "initial_waits_decay": True}
    first = served(stream("short", 0, 0), policy="queue_time", params={"engines": 2}, placed=True, **warm)
    assert {run.engine for run in first.outcome.layers} == {1, 3}  # engine 0 of both devices is not warm yet
    onnx.save(conv_net((1, 1)), tmp_path / "net.onnx")
    net = {"net": {"onnx": str(tmp_path / "net.onnx"), "dimension": "L"}}
    found = served(stream("net", 0, 0, 10, 10, lengths=[6, 9]), models=net)
    assert sorted(where(found, "net")) == [0, 0, 1, 1]


def test_copies_take_turns_on_each_device():
    turns = ModelCopies([ServedModel(copies, [0], [], {}) for copies in ("ab", "c")])
    assert "".join(turns.on(device) for device in (0, 1, 0, 1, 0)) == "acbca"


def broken(dies_at, which=1):
    """Opens devices of which one, the second unless told otherwise, does not answer any more from a cycle on."""
    buses = []

    def opened(params, backend, progress):
        bus = ModelBus(params, progress=progress)
        buses.append(bus)
        if len(buses) - 1 == which:
            genuine = bus.read_reg

            def read(address):
                if bus.cycle > dies_at:
                    raise BusError("the device has gone")
                return genuine(address)

            bus.read_reg = read
        return api.Device(bus)

    return opened


def test_what_a_device_that_dies_served_starts_over_elsewhere():
    told = parse_scenario(
        content(MODELS, stream("short", *range(0, 20_000, 400)), stream("long", 0), devices=2, params={}), "x.toml"
    )
    runs = {}
    for dies_at in (10**9, 200_000):
        runner = RtlRunner(MODEL, check=True, open_device=broken(dies_at))
        outcome = runner.run(told, Policies.named("fcfs"), Path())
        assert outcome.mismatches == [] and outcome.checked == 51
        runs[dies_at] = outcome
    healthy, hurt = runs[10**9], runs[200_000]
    assert [device.died for device in healthy.devices] == [None, None]
    for outcome in (healthy, hurt):  # which each device may learn later, as it had gone on
        arrivals = {(frame.stream, frame.number): frame.arrival for frame in outcome.frames}
        assert {(run.stream, run.number): run.arrival for run in outcome.requests} == arrivals
    assert [device.died for device in hurt.devices] == [None, "BusError: the device has gone"]
    again = [run for run in hurt.requests if run.started_over]
    assert again and all(run.device == 0 for run in again)


def test_with_the_last_device_the_scenario_ends():
    told = parse_scenario(content(MODELS, stream("long", 0), devices=1, params={}), "x.toml")
    with pytest.raises(BusError, match="has gone"):
        RtlRunner(MODEL, open_device=broken(200_000, which=0)).run(told, Policies.named("fcfs"), Path())


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("scenario", ["examples/scenarios/driving.toml", "--devices", 2], "machine.devices = 2: the synthetic machine"),
        ("scenario", [TWO, "--devices", 0], "devices = 0: must be from 1 to 16"),
        ("serve", [TWO, "--devices", 17], "devices = 17: must be from 1 to 16"),
    ],
)
def test_what_cannot_be_is_refused(command, arguments, message):
    code, out, err = caesura_command(command, *arguments)
    assert code and message in err + out


def test_the_file_says_how_many():
    for devices in (0, 17, 1.5):
        with pytest.raises(ScenarioError, match=r"machine.devices"):
            parse_scenario(content(MODELS, devices=devices), "x.toml")
