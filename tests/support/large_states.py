"""Models that have much to keep when they are preempted: many pieces, or all there is."""

from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.image import Image, LiveRange
from tests.support.preempt_images import walking_image

LV1, LV2 = range(2200, 2800, 2), range(1100, 1700, 2)  #: bytes that bodies leave alone


def in_fragments(params: SocParams) -> Image:
    """A model that has single bytes of LV1 and LV2 to keep."""
    image = walking_image(params, engines=1)
    for point in image.meta.cancel_points:
        point.live += [LiveRange(Space.LV1, 0, at, 1, True) for at in LV1]
        point.live += [LiveRange(Space.LV2, 6, at, 1, True) for at in LV2]
    return image


def with_a_row_to_spare(params: SocParams) -> Image:
    """A model that has all accumulators to keep, and all of LV1 but one row."""
    image = walking_image(params, engines=1)
    row = 4 * params.out_channels
    for point in image.meta.cancel_points:
        point.live += [
            LiveRange(Space.LV0_ACC, 0, 0, params.lv0_acc_rows * row, True),
            LiveRange(Space.LV1, 0, 0, 8 * row, True),
            LiveRange(Space.LV1, 0, 9 * row, params.lv1_bytes - 9 * row, True),
        ]
    return image


def with_all_of_lv2(params: SocParams) -> Image:
    """A model that has all of LV2 to keep, and a little of LV1."""
    size = params.lv2_bytes - 1024
    image = walking_image(params, engines=1, windows=(size, 1024))
    for point in image.meta.cancel_points:
        point.live += [LiveRange(Space.LV2, 6, 0, size, True), LiveRange(Space.LV1, 0, 2048, 64, True)]
        point.live.append(LiveRange(Space.LV2, 7, 0, 1024, True))
    return image
