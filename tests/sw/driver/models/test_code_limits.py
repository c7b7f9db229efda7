"""What a job can reach of the code, and that descriptors say so."""

from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import preset
from hw.image.image import JobInfo
from sw.driver import Device
from sw.driver.limits import code_limits
from tests.support.images import copy_image
from tests.support.preempt_images import walking_image

TINY = preset("tiny")
END, WORK = Insn(Op.END).encode(), Insn(Op.CANCEL).encode()


def limits(code, *jobs):
    image = copy_image(TINY)
    image.code = code
    image.meta.jobs = [JobInfo(0, 0, body, prologue) for body, prologue in jobs]
    return [limit // INSN_BYTES for limit in code_limits(image)]


def test_up_to_the_end_of_body_and_prologue():
    code = WORK + END + WORK + WORK + END + END
    assert limits(code, (0, None), (2, 0), (0, 2), (3, 5), (5, None)) == [2, 5, 5, 6, 6]


def test_all_of_the_code_where_a_program_has_no_end():
    assert limits(WORK + END + WORK, (0, None), (2, None), (0, 2), (9, None)) == [2, 3, 3, 3]


def test_descriptors(soc):
    device = Device(soc(TINY))
    model = device.load(walking_image(TINY, jobs=3))
    wanted = code_limits(model.image)
    made = [model.work(i, 0, model.image_events(i), 0) for i in range(3)]
    assert [work.segments[0][1] for work in made] == wanted
    assert wanted[0] < len(model.image.code) == wanted[-1]
