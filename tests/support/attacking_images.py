"""Images that cost others as much as they can: loads that never end, events that nobody signals, tables that lie."""

from dataclasses import dataclass, field

from hw.contract.isa import Insn, Op
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.image import Image, LiveRange
from sw.driver.memory.ranges import accumulator_bytes
from tests.support.images import SIZE, copy_image, encode
from tests.support.preempt_images import walking_image

FOREVER = {"src_seg": 2, "dst_seg": 6, "len": SIZE, "hi": SIZE, "hi1": 1, "hi0": 1, "n1": 32, "n0": 65535}


@dataclass
class Attack:
    """``load``: a load that takes millions of cycles is the first instruction of the body, or what its ``prologue`` or
    the ``reload`` lists of its points hold. ``claim``: of all estimates and bounds, in cycles."""

    where: str
    claim: int = 0
    jobs: int = 3
    name: str = field(default="attack")

    def image(self, params: SocParams) -> Image:
        """A walking image with the attack in it."""
        image = walking_image(params, jobs=self.jobs, name=self.name, engines=1)
        count = len(image.code) // len(Insn(Op.END).encode())
        load = Insn(Op.LD2, FOREVER)
        image.code += encode([load, Insn(Op.END)])
        meta = image.meta
        meta.segment_sizes[0] = len(image.code)
        for job in meta.jobs:
            job.worst_cycles = self.claim
            if self.where == "body":
                job.body_pc = count
            if self.where == "prologue":
                job.prologue_pc = count
        for point in meta.cancel_points:
            point.estimated_interval = point.worst_interval = self.claim
            if self.where == "reload":
                point.reload = [count]
        for layer in meta.layers:
            layer.estimated_load = layer.estimated_compute = self.claim
        return image


def everything_dirty(params: SocParams, *, jobs: int = 6) -> Image:
    """A walking image that says of all its points that all of LV1 and all accumulators are dirty."""
    image = walking_image(params, jobs=jobs, name="dirty", engines=1)
    everything = [
        LiveRange(Space.LV1, 0, 0, params.lv1_bytes, True),
        LiveRange(Space.LV0_ACC, 0, 0, accumulator_bytes(params), True),
    ]
    for point in image.meta.cancel_points:
        point.live = [live for live in point.live if live.space == Space.LV2] + everything
    return image


def crumbs(params: SocParams, *, jobs: int = 6) -> Image:
    """A walking image that says of all its points that single bytes of LV1 are dirty: more copies than fit the driver's
    room for programs at once."""
    image = walking_image(params, jobs=jobs, name="crumbs", engines=1)
    pieces = [LiveRange(Space.LV1, 0, at, 1, True) for at in range(0, params.lv1_bytes, params.lv1_bytes // 600)]
    for point in image.meta.cancel_points:
        point.live = point.live + pieces
    return image


def circle(params: SocParams) -> Image:
    """Two jobs on two engines, each of which waits for the event that the other one signals."""
    image = copy_image(params, engines=2, name="circle")
    first, second = image.meta.jobs
    first.waits, first.signal = [(0, 1)], 1
    second.waits, second.signal = [(1, 1)], 0
    image.meta.events = 2
    return image
