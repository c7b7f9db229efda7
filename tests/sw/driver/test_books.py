import pytest

from hw.contract.job import COUNTERS
from hw.contract.params import preset
from sim.bus import HostCosts
from sw.driver import Device, DriverError
from sw.driver.books import Books
from tests.support.fake_soc import FakeSoc
from tests.support.images import copy_image

BASE = preset("base")


@pytest.fixture
def model():
    return Device(FakeSoc(BASE, costs=HostCosts.free())).load(copy_image(BASE, engines=2))


def completion(job_id):
    names = ["prologue_start", "prologue_end", "start", "end", *(name for name, _ in COUNTERS)]
    return {"job_id": job_id} | dict.fromkeys(names, 0) | {"start": 5, "end": 9}


def test_a_job_from_entry_to_result(model):
    books = Books()
    first, second = books.enter(model, 0, 0), books.enter(model, 1, 1)
    assert first != second and books.engines_of(model) == [0, 1] and books.conflicts(model)
    books.finish(1, completion(second))
    assert books.engines_of(model) == [0]
    result = books.finished[second]
    assert (result.job, result.engine, result.start, result.end, result.resumed) == (1, 1, 5, 9, False)
    books.drop(lambda entry: entry.engine == 0)
    assert not books.outstanding and not books.conflicts(model)
    books.forget_results(model)
    assert not books.finished


def test_completion_of_an_unknown_job_is_an_error(model):
    books = Books()
    job_id = books.enter(model, 0, 0)
    books.withdraw(job_id)
    with pytest.raises(DriverError, match=f"engine 0: completion of job id {job_id}, which is not outstanding"):
        books.finish(0, completion(job_id))


def test_ids_begin_again_and_are_never_zero():
    books = Books()
    books._next_id = 0xFFFFFFFF
    assert [books.new_id(), books.new_id()] == [0xFFFFFFFF, 1]
