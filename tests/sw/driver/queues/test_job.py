"""What a ring says of a job, each time that the job is put there."""

from dataclasses import replace

import pytest

from hw.contract.job import JOB, JOB_MAGIC, JobFlag
from hw.image.image import CancelPoint
from sw.driver.queues.descriptor import Descriptor
from sw.driver.queues.job import DeviceJob, describe

SEGMENTS = tuple((4096 * i, 100 + i) for i in range(8))
WORK = Descriptor(SEGMENTS, 500, 7 << 16, body_pc=3, prologue_pc=1, waits=((4, 9), (5, 2)), signal=6)
WITH_PARAMETERS = replace(WORK, parameters=(0, 8, 1 << 31))


def told(**what):
    """Members of the descriptor that are not zero."""
    job = DeviceJob(12, 0, what.pop("work", WORK), party=None, **what)
    return {name: value for name, value in JOB.unpack(describe(job).pack()).items() if value}


def test_all_that_a_job_can_say():
    job = told(interrupt=True, window_after=2, work=WITH_PARAMETERS)
    assert job.pop("magic") == JOB_MAGIC
    assert [(job.pop(f"base{i}", 0), job.pop(f"limit{i}")) for i in range(8)] == list(SEGMENTS)
    assert JobFlag(job.pop("flags")) == ~JobFlag.RESUME
    assert job == {
        "job_id": 12, "body_pc": 3, "prologue_pc": 1, "cycle_limit": 500, "window_after": 2, "tag": 7 << 16,
        "wait0_id": 4, "wait0_value": 9, "wait1_id": 5, "wait1_value": 2, "signal_id": 6, "param1": 8,
        "param2": 1 << 31,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("what", "flags"),
    [
        ({"work": Descriptor(SEGMENTS, 0, 0)}, JobFlag(0)),
        ({"work": Descriptor(SEGMENTS, 0, 0, waits=((0, 1),), signal=0)}, JobFlag.WAIT0 | JobFlag.SIGNAL),
        ({"prologue": False}, JobFlag.WAIT0 | JobFlag.WAIT1 | JobFlag.SIGNAL),
        ({"work": Descriptor(SEGMENTS, 0, 0, prologue_pc=0)}, JobFlag.PROLOGUE),
    ],
)
def test_flags(what, flags):
    assert told(**what).get("flags", 0) == flags


def test_one_that_goes_on_has_no_prologue_and_waits_for_nothing():
    point = CancelPoint(0, 0, 40, semaphores=[(2, 5), (31, 1)])
    job = told(point=point, interrupt=True)
    assert JobFlag(job["flags"]) == JobFlag.RESUME | JobFlag.SIGNAL | JobFlag.INTERRUPT
    assert job["body_pc"] == 41
    assert {name: value for name, value in job.items() if name.startswith("sem")} == {"sem2": 5, "sem31": 1}
    assert DeviceJob(1, 0, WORK, party=None).waits == WORK.waits
    assert DeviceJob(1, 0, WORK, party=None, point=point).waits == ()
