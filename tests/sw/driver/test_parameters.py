"""Jobs whose instructions name parameters, through the driver: from the numbers of an inference, also across a
suspension, and in what errors say."""

import random

import numpy as np
import pytest

from benchmarks.trust.hidden_numbers import hidden
from hw.contract.bus import HostCosts
from hw.contract.formats import PARAMETERS
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import preset
from hw.image import ImageError, ParameterInfo, flat
from sw.driver import Device, DeviceFault, DriverError
from tests.support.images import SIZE, copy_image
from tests.support.preempt_images import smashing_image, walking_image

TINY = preset("tiny")
LIMIT = 10_000_000
TABLE = [ParameterInfo("position", 0, 7, mul=SIZE), ParameterInfo("rows", 1, 32, add=7, div=8)]
#: Reads the ``position``-th piece of the input and so many rows of eight bytes of it.
WALK = f"""
LD2 src_seg=2 dst_seg=6 len={SIZE} hi={SIZE} hi1=1 hi0=1 signal=0 src+P0
ST2 src_seg=6 dst_seg=3 len=16 hi=16 src_s0=16 dst_s0=16 hi1=1 hi0=32 wait=0 n0+P1
END
"""


def piece_image(body: str = WALK):
    image = copy_image(TINY, body)
    image.meta.segment_sizes[2:4] = [8 * SIZE, 8 * SIZE]
    image.meta.segment_sizes[6] = 8 * SIZE
    image.meta.parameters = list(TABLE)
    image.meta.jobs[0].parameters = [0, 1]
    return image


def run(device, model, numbers):
    device.begin(model, LIMIT, numbers)
    return device.collect(device.submit(model, [0], limit=LIMIT), LIMIT)


def test_parameters_follow_from_the_numbers_of_an_inference(soc):
    device = Device(soc(TINY))
    model = device.load(piece_image())
    data = np.random.default_rng(1).bytes(8 * SIZE)
    device.bus.write_mem(model.segments[2][0], data)
    for position, rows in ((0, 1), (5, 16), (7, 9), (2, 17)):
        device.bus.write_mem(model.segments[3][0], bytes(8 * SIZE))
        run(device, model, {"position": position, "rows": rows})
        moved = 16 * (1 + (rows + 7) // 8)
        found = device.bus.read_mem(model.segments[3][0], moved + 16)
        wanted = data[position * SIZE :][: min(moved, SIZE)]
        assert found[: len(wanted)] == wanted and not any(found[moved:])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (None, r"model 'copy': number 'position' is missing; it must be 0 to 7"),
        ({"position": 8, "rows": 1}, r"'position' is 8; it must be 0 to 7"),
        ({"position": 0, "rows": 0}, r"'rows' is 0; it must be 1 to 32"),
        ({"position": 0, "rows": 1, "row": 1}, r"'row' is not known; its numbers are 'position', 'rows'"),
    ],
)
def test_numbers_out_of_their_range_are_refused_by_name(soc, numbers, message):
    device = Device(soc(TINY))
    model = device.load(piece_image())
    with pytest.raises(DriverError, match=message):
        device.begin(model, LIMIT, numbers)
    run(device, model, {"position": 0, "rows": 1})
    with pytest.raises(DriverError, match="'rows' is not known; its numbers are none"):
        device.begin(device.load(copy_image(TINY)), LIMIT, {"rows": 1})


def test_a_fault_shows_the_instruction_as_it_was_executed(soc):
    device = Device(soc(TINY))
    model = device.load(piece_image(WALK.replace("n0+P1", "dst+P0 n0+P1")))
    with pytest.raises(DeviceFault, match=r"dst\+P0 n0\+P1 = ST2 .*dst=0x1c0 .*n0=5"):
        run(device, model, {"position": 7, "rows": 25})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": TABLE[:1]}, "job 0: there is no parameter 1"),
        ({"parameters": TABLE * 600}, "1200 parameters, where an image has at most 1024"),
        ({"parameters": [ParameterInfo("a", 3, 2), TABLE[1]]}, r"parameter 0 \('a'\): its range or its formula"),
        ({"parameters": [ParameterInfo("a", 0, 2, div=0), TABLE[1]]}, "is impossible"),
        ({"parameters": [ParameterInfo("a", 0, 1 << 20, mul=1 << 20), TABLE[1]]}, "is impossible"),
        ({"parameters": [ParameterInfo("a", 0, 2, add=-1), TABLE[1]]}, "is impossible"),
    ],
)
def test_an_image_with_an_impossible_table_is_refused(change, message):
    image = piece_image()
    image.validate()
    for name, value in change.items():
        setattr(image.meta, name, value)
    with pytest.raises(ImageError, match=message):
        image.validate()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([], r"PC 0: src\+P0: there are 0 parameters"),
        ([0], r"PC 1: n0\+P1: there are 1 parameters"),
        ([0, -1], "job 0: there is no parameter -1"),
        ([0, 1] * 5, "job 0: 10 parameters, where jobs carry 8"),
    ],
)
def test_a_job_that_names_what_it_does_not_carry_is_refused(chosen, message):
    image = piece_image()
    image.meta.jobs[0].parameters = chosen
    with pytest.raises(ImageError, match=message):
        image.validate()


def test_each_job_carries_parameters_of_its_own(soc):
    """Of more than a job can carry; what an instruction names counts from the job's first."""
    image = walking_image(TINY, jobs=2)
    table = [ParameterInfo(f"n{i}", 0, 9) for i in range(PARAMETERS + 3)]
    image.meta.parameters = table
    image.meta.jobs[0].parameters, image.meta.jobs[1].parameters = [10, 2], [0, 10, 9]
    device = Device(soc(TINY))
    model = device.load(image)
    device.begin(model, LIMIT, {info.name: i % 10 for i, info in enumerate(table)})
    jobs = device.submit(model, [0, 1], limit=LIMIT)
    assert [job.work.parameters for job in jobs] == [(0, 2), (0, 0, 9)]
    device.collect(jobs, LIMIT)


def test_the_table_is_in_the_file_and_there_is_no_flat_form():
    image = piece_image()
    assert type(image).from_bytes(image.to_bytes()).meta.parameters == TABLE
    with pytest.raises(ImageError, match="no flat form: its jobs have parameters"):
        flat(image)


def hidden_walk(values):
    """The image that walks over all memories, its numbers hidden in the parameters of its jobs; prologues stay."""
    image = walking_image(TINY, jobs=2)
    rng = random.Random(7)
    words = [image.code[at : at + INSN_BYTES] for at in range(0, len(image.code), INSN_BYTES)]
    insns = [Insn.decode(word) for word in words]
    ends = [pc for pc, insn in enumerate(insns) if insn.op is Op.END]
    for job in image.meta.jobs:
        end = next(pc for pc in ends if pc >= job.body_pc)
        insns[job.body_pc : end] = hidden(rng, insns[job.body_pc : end], values)
    image.code = b"".join(insn.encode() for insn in insns)
    image.meta.parameters = [ParameterInfo("n", 1, 9, add=-1, mul=value) for value in values]
    for job in image.meta.jobs:
        job.parameters = list(range(len(values)))
    again = {pc for point in image.meta.cancel_points for pc in point.reload}
    return image, sum(bool(insns[pc].added) for pc in again)


POINTS = len(walking_image(TINY, jobs=2).meta.cancel_points)


@pytest.mark.parametrize("point", range(POINTS))
def test_preempted_at_every_point(soc, point):
    """What it loads again behind a point has the parameters of the job that was halted."""
    values = [random.Random(point).choice((1, 4, 16, 64)) for _ in range(PARAMETERS)]
    image, count = hidden_walk(values)
    assert count >= 1
    device = Device(soc(TINY, seed=point, costs=HostCosts.free()))
    victim = device.load(image)
    urgent = device.load(smashing_image(TINY, engines=TINY.engines))
    data = np.random.default_rng(point).integers(-128, 128, (1, 8, 8)).astype(np.int8)
    victim.write_tensor("x", data)
    device.begin(victim, LIMIT, {"n": 2})
    jobs = device.submit(victim, range(len(image.meta.jobs)), limit=LIMIT)
    device.bus.advance(1)
    for _ in range(point):
        device.bus.step()
    suspension = device.suspend(range(TINY.engines), urgent, verify=True)
    device.admit(urgent)
    urgent.write_tensor("x", data)
    device.begin(urgent, LIMIT)
    device.collect(device.submit(urgent, range(len(urgent.image.meta.jobs)), limit=LIMIT), LIMIT)
    device.resume(suspension)
    device.collect(jobs, LIMIT)
    np.testing.assert_array_equal(victim.read_tensor("y"), data)
