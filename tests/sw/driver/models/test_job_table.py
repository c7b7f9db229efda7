import pytest

from hw.contract.job import COUNTERS
from hw.contract.params import preset
from sim.bus import HostCosts
from sw.driver import Device
from sw.driver.models.job_table import JobTable
from tests.support.images import copy_image

BASE = preset("base")


@pytest.fixture
def model(soc):
    return Device(soc(BASE, costs=HostCosts.free())).load(copy_image(BASE, engines=2))


def completion(job_id):
    names = ["prologue_start", "prologue_end", "start", "end", *(name for name, _ in COUNTERS)]
    return {"job_id": job_id} | dict.fromkeys(names, 0) | {"start": 5, "end": 9}


def test_a_job_from_entry_to_result(model):
    table = JobTable()
    table.enter(1, model, 0, 0), table.enter(2, model, 1, 1)
    assert table.engines_of(model) == [0, 1] and table.conflicts(model) and table.models([1]) == [model]
    table.finish(1, completion(2))
    assert table.engines_of(model) == [0] and table.models([1]) == []
    result = table.finished[2]
    assert (result.job, result.engine, result.start, result.end, result.resumed) == (1, 1, 5, 9, False)
    table.remove([1])
    assert not table.outstanding and not table.conflicts(model)
    table.forget_results(model)
    assert not table.finished


def test_the_holder_of_a_weight_window_is_the_job_before(model):
    table = JobTable()
    model.predecessors[1] = 0
    assert table.window_holder(model, 0, 0) is None and table.window_holder(model, 1, 0) is None
    table.enter(7, model, 0, 0)
    found = table.window_holder(model, 1, 0)
    assert found is not None and found[0] == 7 and found[1].job == 0
