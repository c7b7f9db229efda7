"""Published loads: what is sent when, how rates are stretched, and what is counted."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.loads import building, disb, mixes, rows, xrbench
from benchmarks.loads.load import Every, Load, Loop, Published, Tenant, rate
from benchmarks.loads.serving import ServedLoad, Server, machine
from benchmarks.workloads import registry
from caesura.scenario import Frame, LayerRun, Outcome
from hw.contract.params import MIB, preset

BASE = preset("base")
NOWHERE = Published("a test", {}, "everything")
MS = building.MS


def all_loads():
    moca = [mixes.moca(letter, service) for letter in mixes.MOCA_SETS for service in mixes.MOCA_SERVICE]
    return [*disb.loads(), *xrbench.loads(), *(mixes.prema(number) for number in range(3)), *moca]


def built(load, requests=4, alone=1.0, seed=0):
    """The scenario of ``load`` on a machine on which every request takes ``alone`` milliseconds."""
    times = {tenant.name: alone * MS for tenant in load.tenants}
    return building.scenario(load, machine(BASE, whole=False), times, requests, whole=False, seed=seed)


@pytest.mark.parametrize("load", all_loads(), ids=lambda load: load.name)
def test_every_load_is_a_scenario_of_known_workloads(load):
    scenario = built(load)
    assert {*load.networks, *map(building.small, load.networks)} <= set(registry.names())
    assert {stream.name for stream in scenario.streams} <= {tenant.name for tenant in load.tenants}
    assert built(load) == scenario != built(load, seed=1) or load.name[:5] in ("disb_", "xrben")


def test_rates_are_stretched_so_that_they_demand_the_published_share():
    load = {load.name: load for load in disb.loads()}["disb_a"]
    alone = {"vgg19_rt": 27.67 * MS, "resnet152_be": 40 * MS}
    scenario = building.scenario(load, machine(BASE, whole=False), alone, 5, whole=False)
    arrivals = scenario.streams[0].arrivals
    assert arrivals.count == 5
    assert alone["vgg19_rt"] / arrivals.period == pytest.approx(disb.ALONE["vgg19"] / 10)


def test_rates_without_a_reference_demand_what_the_load_says():
    tenants = (Tenant("a", ("vgg19",), Every(1.0)), Tenant("b", ("resnet152",), Every(4.0)))
    load = Load("x", tenants, NOWHERE, demand=0.5)
    assert load.dilation({"vgg19": 3.0, "resnet152": 8.0}) == pytest.approx((3 + 2) / 0.5)
    assert replace(load, tenants=(Tenant("a", ("vgg19",), Loop()),)).dilation({"vgg19": 3.0}) == 1


def test_disb_has_the_clients_of_its_files():
    tenants = {load.name[-1]: load.tenants for load in disb.loads()[:5]}
    assert {key: len(found) for key, found in tenants.items()} == {"a": 2, "b": 2, "c": 6, "d": 10, "e": 10}
    assert [tenant.pattern for tenant in tenants["b"]] == [Loop(counted=True), Loop()]
    assert all(rate(tenant.pattern) == 0.02 for tenant in tenants["d"] if tenant.priority)
    assert sum(rate(tenant.pattern) for tenant in disb.loads()[5].tenants) == pytest.approx(
        0.01 + 0.005 * 1.15 + 0.02 + 0.01 + 1 / 210
    )


def test_a_load_for_two_devices_demands_more_than_one_has():
    load = disb.for_devices(2)
    stretched = load.dilation(disb.ALONE)
    assert load.demanded(disb.ALONE) / stretched == pytest.approx(1.8)
    assert all(stream.deadline == disb.SLACK * MS for stream in built(load).streams)
    frames = [
        Frame("vgg19_rt", 0, 0, 5.0, end=5.0),
        Frame("vgg19_rt", 1, 0, 5.0, end=6.0),
        Frame("vgg19_rt", 2, 0, end=9),
    ]
    assert served(frames, []).in_time == 2


def test_the_trace_has_bursts():
    load = disb.loads()[5]
    streams = {stream.name: stream for stream in built(load, requests=40).streams}
    times = streams["vgg19_rt"].arrivals.times
    stretched = load.dilation(dict.fromkeys(disb.NETWORKS, 1.0)) * MS
    gaps = [(second - first) / stretched for first, second in pairwise(times)]
    assert len(times) % 4 == 0 and len(times) >= 36
    assert all(2.9 < gap < 15.1 for number, gap in enumerate(gaps) if number % 4 != 3)
    assert all(gap > 100 for gap in gaps[3::4])


def test_speech_follows_a_share_of_the_keywords():
    load = {load.name: load for load in xrbench.loads()}["xrbench_ar_assistant"]
    streams = {stream.name: stream for stream in built(load, requests=400).streams}
    silent, spoken = (set(streams[name].arrivals.times) for name in ("KD", "KD+ASR"))
    assert not silent & spoken and len(spoken) > 10 < len(silent)
    assert [stage.name.split(".")[-1] for stage in streams["KD+ASR"].stages] == ["squeezenet", "distilbert"]


def test_xrbench_keeps_its_rates_where_networks_are_as_fast_as_its_reference():
    for load in xrbench.loads():
        assert load.dilation(xrbench.REFERENCE) == pytest.approx(1)
        assert load.demanded(xrbench.REFERENCE) < 1


def test_whole_loads_get_the_memory_that_they_need():
    assert machine(BASE, whole=True)["params"]["dram_bytes"] == 1024 * MIB
    assert machine(BASE, whole=False)["params"]["dram_bytes"] == BASE.dram_bytes


def served(frames, layers):
    tenants = (Tenant("urgent", ("vgg19",), Every(10.0), priority=1), Tenant("long", ("resnet152",), Loop()))
    load = Load("x", tenants, NOWHERE, reference={"vgg19": 1.0, "resnet152": 1.0})
    outcome = Outcome(2, 1, frames, layers)
    return ServedLoad(load, built(load), outcome, {"urgent": 10.0, "long": 100.0}, BASE)


def layer(stream, number, start, end, decided=None):
    begin = start if decided is None else decided
    return LayerRun(stream, stream, number, 0, begin, begin, 0, 1, begin, (0, 0), start, start, start, end)


def test_what_urgent_requests_take_and_what_others_keep():
    """The long model has ended once and half of its layers again when the last urgent request ends, at 200."""
    frames = [
        Frame("long", 0, 0, end=120), Frame("urgent", 0, 50, end=62), Frame("long", 1, 120, end=230),
        Frame("urgent", 1, 180, end=200),
    ]  # fmt: skip
    layers = [
        layer("long", 0, 0, 50), layer("long", 1, 64, 120), layer("urgent", 0, 52, 62, decided=50),
        layer("long", 0, 120, 180), layer("urgent", 0, 188, 200, decided=181), layer("long", 1, 202, 230),
    ]  # fmt: skip
    found = served(frames, layers)
    assert (found.against_alone(50), found.against_alone(99)) == (1.2, 2.0)
    assert (found.late_start(50), found.late_start(99)) == (2, 8)
    assert found.kept == pytest.approx(100 * (100 + 50) / (200 - 2 * 10))


def test_fairness_by_priority_wants_more_progress_for_the_more_urgent():
    tenants = tuple(Tenant(name, ("vgg16",), Every(1.0), priority) for name, priority in (("low", 0), ("high", 1)))
    load = Load("x", tenants, NOWHERE, demand=0.9)

    def of(low, high):
        frames = [Frame("low", 0, 0.0, end=100 / low), Frame("high", 0, 5.0, end=5 + 100 / high)]
        outcome = Outcome(1, 1, frames, [])
        return ServedLoad(load, built(load), outcome, {"low": 100.0, "high": 100.0}, BASE).fairness_by_priority

    assert of(0.4, 0.8) == pytest.approx(1)
    assert of(0.8, 0.8) == of(0.2, 0.8) == pytest.approx(0.5)


def test_rows_have_names_of_their_own():
    names = [figure.name for figure in rows.figures()]
    assert len(set(names)) == len(names)
    assert all(figure.optional for figure in rows.figures() if figure.name.startswith("whole_"))


@pytest.mark.slow
def test_a_small_load_is_served():
    """On ``base``: an urgent encoder every now and then, a long one in a closed loop."""
    tenants = (Tenant("urgent", ("distilbert",), Every(5.5), priority=1), Tenant("long", ("distilbert",), Loop()))
    load = Load("x", tenants, NOWHERE, reference={"distilbert": 1.0})
    server = Server(BASE)
    alone = server.alone(load)
    found = server.serve(load, alone, 2)
    detail = found.to_dict()
    assert [frame.stream for frame in found.urgent] == ["urgent"] * 2
    assert detail["preemptions"] >= 1 and 1 <= found.against_alone(99) < 1.5
    assert 80 < detail["others_keep_percent"] < 110
    assert not math.isnan(found.late_start(99)) and detail["published"]["source"] == "a test"
    undisturbed = server.serve(load, alone, 2, undisturbed=True)
    assert {frame.stream for frame in undisturbed.outcome.frames} == {"urgent"}
    assert undisturbed.against_alone(99) == pytest.approx(1, abs=0.01)
