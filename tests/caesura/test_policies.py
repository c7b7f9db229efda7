"""A policy of one's own, as everything that takes one takes it: a name, a class, an object, ``module:Class``."""

import json

import pytest

import caesura
from caesura.commands.scenario import scenario
from caesura.policies import ORDER, PLACEMENT, Fcfs, OrderPolicy, QueueTime, ShortestQueue
from caesura.scenario import load_scenario, on_devices, run_scenario, serve
from examples.policies.least_memory import LeastMemory
from sim.model.bus import ModelBus
from tests.support.documented import ROOT
from tests.support.preempt_images import walking_image

TINY = caesura.PRESETS["tiny"]
SCENARIOS = ROOT / "examples" / "scenarios"
MIXED = SCENARIOS / "mixed_reality.toml"


class LastFirst(OrderPolicy):
    """The youngest request; counts what it decided."""

    def __init__(self, limit=0):
        self.decided, self.limit = 0, limit

    def choose(self, state, candidates):
        self.decided += 1
        return max(candidates, key=lambda c: c.request)


class SecondQueue:
    """The last queue, always."""

    def __init__(self, queues):
        self.last = queues - 1

    def place(self, operator):
        return self.last

    def executed(self, operator, queue):
        pass


@pytest.fixture
def device():
    return caesura.Device(ModelBus(TINY))


def test_names_of_the_public_place_are_those_of_the_command_line():
    classes = {value for value in vars(caesura.policies).values() if isinstance(value, type)}
    assert {*ORDER.values(), *PLACEMENT.values()} <= classes


@pytest.mark.parametrize("made", ["class", "object", "maker"])
def test_a_run_time_takes_it(device, made):
    mine = LastFirst()
    models = [device.load(walking_image(TINY, jobs=2)) for _ in range(2)]
    given = {"class": LastFirst, "object": mine, "maker": lambda: mine}[made]
    runtime = caesura.Runtime(device, policy=given, placement=ShortestQueue, placed=True)
    for model in models:
        runtime.submit(model, caesura.random_samples(model.image, 1, 0)[0])
    runtime.run_until_done()
    assert all(request.error is None for request in runtime.requests)
    assert (mine.decided > 0) == (made != "class")


@pytest.mark.parametrize(
    "policy, error, message",
    [
        (SecondQueue(1), TypeError, "policy is a name, a class or an object with the method choose"),
        (3, TypeError, "an object with the method choose, not 3"),
        (dict, TypeError, "dict is no policy for the order of layers: it has no choose, window, yields"),
        ("queue_time", ValueError, "queue_time chooses queues: give it as placement"),
    ],
)
def test_a_run_time_refuses_what_is_none(device, policy, error, message):
    with pytest.raises(error, match=message):
        caesura.Runtime(device, policy)


def test_one_object_decides_for_one_device():
    devices = [caesura.Device(ModelBus(TINY)) for _ in range(2)]
    with pytest.raises(ValueError, match="one LastFirst cannot decide for 2 devices"):
        caesura.Fleet(devices, LastFirst())
    caesura.Fleet(devices, LastFirst)
    caesura.Fleet(devices[:1], LastFirst())
    twice = on_devices(load_scenario(SCENARIOS / "small_models.toml"), 2)
    with pytest.raises(ValueError, match="for 2 devices"):
        serve(twice, LastFirst(), folder=SCENARIOS)


def test_a_scenario_is_served_alike_however_it_is_given():
    mine = LastFirst()
    path = f"{ROOT / 'tests' / 'caesura' / 'test_policies.py'}:LastFirst"
    found = [serve(MIXED, given).result for given in (LastFirst, mine, "tests.caesura.test_policies:LastFirst", path)]
    assert mine.decided > 0 and [one["policy"] for one in found[:2]] == ["LastFirst"] * 2
    told = [{k: v for k, v in one.items() if k not in ("policy", "decision_time")} for one in found]
    assert told[0]["makespan"] == told[1]["makespan"] == told[2]["makespan"] == told[3]["makespan"]
    assert told[0]["streams"] == told[3]["streams"] != serve(MIXED, "fcfs").result["streams"]
    assert serve(MIXED, Fcfs).result["policy"] == "fcfs"


def test_placement_of_ones_own():
    served = serve(SCENARIOS / "long_operator.toml", SecondQueue)
    assert served.result["policy"] == "SecondQueue"
    assert {run.engine for run in served.outcome.layers} == {served.outcome.engines - 1}
    beside = serve(SCENARIOS / "long_operator.toml", "fcfs", placement=SecondQueue)
    assert {run.engine for run in beside.outcome.layers} == {served.outcome.engines - 1}
    assert serve(SCENARIOS / "long_operator.toml", QueueTime).result["policy"] == "queue_time"


def test_options_are_of_classes():
    assert serve(MIXED, LastFirst, options={"limit": 3}).result["policy"] == "LastFirst"
    with pytest.raises(ValueError, match="LastFirst exists, and takes no options"):
        serve(MIXED, LastFirst(), options={"limit": 3})


def test_a_module_in_the_current_folder(tmp_path, monkeypatch, capsys):
    """As ``python -m`` finds it, whatever the path of the interpreter is."""
    mine = (ROOT / "examples" / "policies" / "least_memory.py").read_text()
    (tmp_path / "mine_of_test_policies.py").write_text(mine)
    monkeypatch.chdir(tmp_path)
    scenario(MIXED, ["mine_of_test_policies:LeastMemory"], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["makespan"] == serve(MIXED, LeastMemory).result["makespan"]
    for wrong, message in (
        ("nowhere_at_all:LeastMemory", "module 'nowhere_at_all' cannot be imported: ModuleNotFoundError"),
        ("mine_of_test_policies:Candidate", "'Candidate' is no policy"),
    ):
        with pytest.raises(ValueError, match=message):
            scenario(MIXED, [wrong])


def test_a_scenario_file_names_its_own(tmp_path):
    (tmp_path / "mine.py").write_text((ROOT / "examples" / "policies" / "least_memory.py").read_text())
    file = tmp_path / "s.toml"
    file.write_text('policy = "mine.py:LeastMemory"\n' + MIXED.read_text())
    assert run_scenario(file)["policy"].endswith("mine.py:LeastMemory")
    assert run_scenario(file)["makespan"] == serve(MIXED, LeastMemory).result["makespan"]
    assert run_scenario(file, "fcfs")["policy"] == "fcfs"
