"""A run time with a certificate serves its streams at their rates, and one that fails is below all others."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.contract.params import preset
from sw.admission import RequestStream, Response, WorkPiece
from sw.driver import Device, DeviceFault
from sw.runtime import Mechanism, Runtime
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)


def stream(name, priority, **more):
    more = {"period": 100_000} | more
    return RequestStream(name, priority, pieces=(WorkPiece(1_000),), **more)


@dataclass
class Admitted:
    """What a run time wants of a certificate."""

    streams: list = field(default_factory=lambda: [stream("urgent", 2), stream("steady", 1, burst=2, jitter=500)])
    refused: list = field(default_factory=list)


class Served:
    """A run time with two models under a certificate, on a machine of which instructions can be made to fail."""

    def __init__(self, *streams):
        self.soc = FakeSoc(TINY)
        self.device = Device(self.soc)
        self.models = {
            "urgent": self.device.load(smashing_image(TINY)),
            "steady": self.device.load(walking_image(TINY, jobs=6)),
        }
        self.runtime = Runtime(self.device, certificate=Admitted(*([list(streams)] if streams else [])))
        self.begin = self.device.bus.cycle

    def submit(self, name, arrival=0, model=None, **more):
        return self.runtime.submit(self.models[model or name], X, stream=name, arrival=self.begin + arrival, **more)

    def failing(self):
        """Let every body of the urgent model fail, as only that fills with 90."""
        self.soc.inject = lambda engine, insn: Fault.BUS if insn.op is Op.LD1 and insn["fill"] == 90 else None


def test_what_comes_too_soon_is_let_in_later():
    served = Served()
    found = [served.submit("urgent", at) for at in (1_000, 2_000, 250_000)]
    assert [one.arrival - served.begin for one in found] == [1_000, 101_000, 250_000]
    assert [one.deferred for one in found] == [0, 99_000, 0]
    served.runtime.run_until_done()
    assert all(one.started >= one.arrival and one.error is None for one in found)


def test_each_stream_has_a_bucket_of_its_own_with_its_burst_and_jitter():
    served = Served()
    steady = [served.submit("steady", at) for at in (1_000, 2_000, 3_000, 4_000)]
    urgent = served.submit("urgent", 2_500)
    assert [one.deferred for one in steady] == [0, 0, 101_000 - 500 - 3_000, 201_000 - 500 - 4_000]
    assert urgent.deferred == 0


def test_a_stream_without_a_period_is_let_in_as_it_comes():
    served = Served(stream("urgent", 2), stream("steady", 1, period=None, promised=False))
    assert [served.submit("steady", at).deferred for at in (1_000, 1_001, 1_002)] == [0, 0, 0]


def test_priorities_are_those_of_the_certificate_and_who_is_in_the_way_is_dumped():
    """Although to wait would cost less."""
    served = Served()
    steady, urgent = served.submit("steady", 500), served.submit("urgent", 5_000)
    served.runtime.run_until_done()
    assert (steady.priority, urgent.priority) == (1, 2)
    assert steady.preempted == 1 and steady.killed == 0 and urgent.ended < steady.ended


def test_a_stream_of_which_a_request_fails_is_below_all_others():
    served = Served()
    first, waiting = served.submit("urgent", 500), served.submit("urgent", 150_000)
    steady = [served.submit("steady", at) for at in (1_000, 149_000)]
    served.failing()
    while not first.done():
        served.runtime.step()
    assert isinstance(first.error, DeviceFault) and served.runtime.admitted.demoted == {"urgent"}
    served.soc.inject = lambda engine, insn: None
    served.runtime.run_until_done()
    assert waiting.priority == 0 and waiting.started >= steady[1].ended > 150_000
    assert [one.error for one in (waiting, *steady)] == [None] * 3
    assert served.submit("urgent", 400_000).priority == 0


def test_a_body_that_takes_longer_than_it_may_costs_its_own_stream_alone():
    served = Served()
    served.models["urgent"] = served.device.load(smashing_image(TINY, name="slow"), body_cycles=[10])
    slow, steady = served.submit("urgent", 5_000), served.submit("steady", 500)
    served.runtime.run_until_done()
    assert isinstance(slow.error, DeviceFault) and slow.error.record.code == Fault.CYCLE_LIMIT
    assert served.runtime.admitted.demoted == {"urgent"} and steady.error is None and not steady.repeated


def test_a_request_that_is_cancelled_demotes_nobody():
    served = Served()
    served.submit("urgent", 1_000).cancel()
    served.runtime.run_until_done()
    assert not served.runtime.admitted.demoted


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"policy": "idle_time"}, "layers run first come, first served: leave policy out"),
        ({"placed": True}, "engines that they are loaded for: leave placed out"),
        ({"rule": lambda situation: Mechanism.WAIT}, "who is in the way is dumped: leave rule out"),
        ({"may_kill": True, "ahead": 9}, "slots; who is in the way is dumped: leave ahead, may_kill out"),
        ({"at_arrival": True, "layers_per_decision": 3}, "one layer at a time: leave at_arrival, layers_per_decision"),
    ],
)
def test_what_contradicts_a_certificate_is_refused(given, told):
    with pytest.raises(ValueError, match=told):
        Runtime(Device(FakeSoc(TINY)), certificate=Admitted(), **given)


def test_first_come_first_served_may_be_said():
    Runtime(Device(FakeSoc(TINY)), "fcfs", preemptive=True, certificate=Admitted())


def test_a_certificate_that_refuses_a_stream_is_not_run_under():
    late = Response(stream("steady", 1), 0, 0)
    with pytest.raises(ValueError, match="the certificate refuses steady"):
        Runtime(Device(FakeSoc(TINY)), certificate=Admitted(refused=[late]))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"priority": 3}, "is that of its stream: leave priority out"),
        ({"engines": [0]}, "leave engines out"),
        ({"announced": True}, "nobody is suspended before a request comes"),
        ({"deadline": 1e6}, r"nothing is aborted at a deadline \(soft_deadline=True\)"),
        ({"model": "steady"}, "model 'walk.*' runs stream 'steady'; load it again for stream 'urgent'"),
    ],
)
def test_what_contradicts_the_stream_of_a_request_is_refused(given, told):
    served = Served()
    served.submit("steady", 1_000, deadline=1, soft_deadline=True)
    with pytest.raises(ValueError, match=told):
        served.submit("urgent", **given)
    assert served.submit("urgent", 1_000).deferred == 0


def test_a_stream_has_one_model_and_a_request_a_stream():
    served = Served()
    served.submit("steady")
    with pytest.raises(ValueError, match=r"stream 'steady' runs 'walk.*', loaded once; it cannot run"):
        served.submit("steady", model="urgent")
    with pytest.raises(ValueError, match=r"stream 'other': .* give stream=\.\.\., one of urgent, steady"):
        served.submit("other", model="urgent")
    with pytest.raises(ValueError, match="no stream: a run time with a certificate"):
        served.runtime.submit(served.models["urgent"], X)
    with pytest.raises(ValueError, match="this run time has no certificate"):
        Runtime(Device(FakeSoc(TINY))).submit(served.models["urgent"], X, stream="urgent")


def test_what_is_refused_leaves_the_device_to_others():
    served = Served()
    with pytest.raises(ValueError, match="stream 'other'"):
        served.submit("other", model="urgent")
    assert Runtime(served.device).submit(served.models["urgent"], X).result()


def test_a_model_on_other_engines_than_were_admitted_is_refused():
    served = Served(stream("urgent", 2, engines=frozenset({1})))
    with pytest.raises(ValueError, match=r"for engines \[0\], and stream 'urgent' was admitted on \[1\]"):
        served.submit("urgent")
