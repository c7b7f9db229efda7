"""Every term of a certificate is at least what the machine takes."""

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest

import caesura
from caesura.certificate.image_costs import ImageCosts, Neighbours
from caesura.certificate.image_stream import image_terms
from caesura.certificate.switch_costs import SwitchCosts
from caesura.samples import random_samples
from caesura.scenario.model_images import ModelImages
from caesura.views.progress import Progress
from hw.contract.params import preset
from sim.cost import Others, stretches, whole_bodies
from sw.driver.limits import body_limits
from sw.runtime import Runtime
from tests.caesura.certificate.two_digits import DIGITS, scenario
from tests.support.onnx_models import Net

TINY, BASE = preset("tiny"), preset("base")


@pytest.fixture(scope="module")
def image():
    return caesura.compile(DIGITS, TINY)


def measured(image, params):
    """Cycles from the arrival of a request to its end, and of its jobs by number."""
    with caesura.open(params, "model") as device:
        model = device.load(image)
        sample = random_samples(image, 1, 0)[0]
        _, stats = model.run(sample)
        begin = device.driver.bus.cycle
        request = Runtime(device, preemptive=True).submit(model, sample)
        request.result()
        return request.ended - begin, stats.jobs


@pytest.mark.parametrize("params", [TINY, BASE], ids=lambda params: params.name)
def test_a_request_alone_takes_no_longer_than_its_own_time(params):
    image = caesura.compile(DIGITS, params)
    costs = ImageCosts(image, params.engines, Neighbours())
    cycles, jobs = measured(image, params)
    assert cycles <= costs.start + costs.execution <= 8 * cycles
    for result in jobs:
        assert result.end - result.start <= costs.bodies[result.job]


def test_a_body_may_take_what_is_its_bound_or_that_of_the_loads_that_a_point_runs_again(image):
    costs, terms = ImageCosts(image, 1, Neighbours()), image_terms(image, 1, Neighbours())
    assert all(limit >= body > 0 for limit, body in zip(terms.bodies, costs.bodies, strict=True))
    assert all(limit < most for limit, most in zip(terms.bodies, body_limits(image, TINY), strict=True))


def test_neighbours_make_everything_longer(image):
    alone, beside = (image_terms(image, 1, Neighbours(engines)) for engines in (0, 1))
    assert alone.execution < beside.execution and alone.start < beside.start and alone.refill < beside.refill
    assert all(one.cycles <= other.cycles for one, other in zip(alone.pieces, beside.pieces, strict=True))


def test_what_starts_over_is_prologues_of_jobs_in_a_row():
    """An engine holds jobs that follow each other, the first of the next inference behind the last of this one; of all
    runs of so many the longest counts, not the longest prologues wherever they are."""
    image = caesura.compile(DIGITS, replace(TINY, job_slots=2))
    assert len(image.meta.jobs) == 4 and {job.engine for job in image.meta.jobs} == {0}
    for prologues, most in (([9, 1, 7, 2], 11), ([1, 9, 2, 7], 11), ([9, 0, 0, 8], 17)):
        own = SimpleNamespace(prologues=prologues)
        assert SwitchCosts(image, 1, Neighbours(), own).refill == most


def test_what_others_may_overwrite_is_dumped_and_comes_back(image):
    apart, over = (image_terms(image, 1, Neighbours(0, window)) for window in (0, TINY.lv2_bytes))
    assert apart.restore < over.restore
    assert max(piece.dump for piece in apart.pieces) < max(piece.dump for piece in over.pieces)


def test_the_host_at_work_for_others_delays_what_it_does(image):
    free, waiting = (image_terms(image, 1, Neighbours(host_wait=wait)) for wait in (0, 1_000))
    assert (waiting.start, waiting.restore) == (free.start + 1_000, free.restore + 1_000)
    assert all(other.dump == one.dump + 1_000 for one, other in zip(free.pieces[:-1], waiting.pieces[:-1], strict=True))


def test_one_piece_for_each_point_and_each_end(image):
    meta = image.meta
    pieces = image_terms(image, 1, Neighbours()).pieces
    assert len(pieces) == len(meta.cancel_points) + len(meta.jobs)
    assert pieces[-1].dump == 0 < min(piece.dump for piece in pieces[:-1])


def test_a_body_without_pauses_is_bounded_below_the_sum_of_its_stretches(image):
    programs = ImageCosts(image, 1, Neighbours()).programs.bodies()
    whole = whole_bodies(programs, TINY, Others(0))
    split = stretches(programs, TINY, Others(0), loading=True)
    assert all(one > 0 for one in whole)
    long = caesura.compile(DIGITS, TINY, options=caesura.Options(cancel_interval=200))
    programs = ImageCosts(long, 1, Neighbours()).programs.bodies()
    assert sum(whole_bodies(programs, TINY, Others(0))) < sum(
        sum(bounds.points) + bounds.end for bounds in stretches(programs, TINY, Others(0), loading=True)
    )
    assert len(split) == len(whole)


def test_stretches_are_those_of_the_image_beside_nobody(image):
    """On a machine with one engine the image has them already."""
    found = stretches(ImageCosts(image, 1, Neighbours()).programs.bodies(), TINY, Others(0), loading=True)
    points = [interval for bounds in found for interval in bounds.points]
    assert all(one <= known.worst_interval + 200 for one, known in zip(points, image.meta.cancel_points, strict=True))


def test_no_request_on_the_device_takes_longer_than_its_certificate():
    """Both streams of a scenario in random phases on the fast model, under preemption."""
    wanted = scenario()
    found, rng = caesura.admit(wanted), random.Random(31)
    images = ModelImages(Progress()).of(wanted, TINY, Path())
    with caesura.open(TINY, "model") as device:
        limits = {"short": found.body_limits["urgent"], "long": found.body_limits["steady"]}
        models = {name: device.load(image, body_cycles=limits[name]) for name, image in images.items()}
        samples = {name: random_samples(image, 1, 0)[0] for name, image in images.items()}
        urgent, steady = (found.of(name).response for name in ("urgent", "steady"))
        for number in range(40):
            runtime = Runtime(device, certificate=found)
            begin = device.driver.bus.cycle + 2_000
            long = runtime.submit(models["long"], samples["long"], arrival=begin, stream="steady")
            phase = rng.randrange(12_000)
            short = runtime.submit(models["short"], samples["short"], arrival=begin + phase, stream="urgent")
            runtime.run_until_done()
            assert short.error is long.error is None
            assert short.ended - short.arrival <= urgent and long.ended - begin <= steady, f"round {number}"


def test_own_time_has_all_bodies_and_prologues_of_an_engine(image):
    costs = ImageCosts(image, 1, Neighbours())
    assert costs.execution >= sum(costs.bodies) + sum(costs.prologues) > 0
    assert all(prologue > 0 for prologue, job in zip(costs.prologues, image.meta.jobs, strict=True) if job.prologue_pc)


def test_engines_work_side_by_side_in_own_time(tmp_path):
    net = Net()
    x = net.dq(net.input((1, 16, 32, 32)), 0.05)
    onnx.save(net.model(net.q(net.conv(x, 0.05, (32, 16, 3, 3)), 0.1)), tmp_path / "m.onnx")
    image = caesura.compile(tmp_path / "m.onnx", BASE)
    costs, engines = ImageCosts(image, 2, Neighbours()), [job.engine for job in image.meta.jobs]
    work = [body + prologue for body, prologue in zip(costs.bodies, costs.prologues, strict=True)]
    each = [sum(one for one, at in zip(work, engines, strict=True) if at == engine) for engine in (0, 1)]
    assert min(each) > 0 and max(each) <= costs.execution < sum(each)
