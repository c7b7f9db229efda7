"""The check of cancellation points on a small image written by hand, complete and with one thing left out at a time."""

import re

import numpy as np
import pytest

from hw.contract.assembly import assemble
from hw.contract.isa import VEC_HEADER
from hw.contract.params import preset
from hw.contract.spaces import Space
from hw.image.image import (
    CancelPoint,
    Image,
    ImageMeta,
    JobInfo,
    LayerInfo,
    LiveRange,
    PortInfo,
    StepInfo,
    TensorInfo,
)
from tests.support.check.preemption import Report, check_points
from tests.support.image_runner import run_image

TINY = preset("tiny")

# Four accumulator rows in two halves; the result goes to LV2, and to DRAM by this job and by the next one.
PROGRAM = """
LD2 len=128 hi=128 hi1=1 hi0=1 src_seg=1 dst_seg=7                          # 0: the prologue
END
LD2 len=16 hi=16 hi1=1 hi0=1 src_seg=2 dst_seg=6 signal=0                   # 2
LD1 len=16 hi=16 hi1=1 hi0=1 src_seg=6 wait=0 signal=1                      # 3
LD1 len=96 hi=96 hi1=1 hi0=1 src_seg=7 dst=1024 signal=3                    # 4: parameters of VEC
LD1 len=32 hi=32 hi1=1 hi0=1 src_seg=7 src=96 dst=2048 signal=1             # 5: weights
LD0 len=16 hi=16 hi1=1 hi0=1 pe_mask=0,1 wait=1                             # 6
LD0 len=32 hi=32 hi1=1 hi0=1 space=WGT view=INTERLEAVED src=2048 wait=1 signal=2,4  # 7
MAC p0=4 p0_s=1 wait=2                                                      # 8
CANCEL point=0                                                              # 9
MAC p0=4 p0_s=1 accumulate=1 wait=4 signal=6                                # 10
VEC src_acc=1 n1=4 a_s1=1 d=512 d_s1=8 p=1024 per_channel=1 wait=3,6 signal=7  # 11
CANCEL point=1                                                              # 12
ST1 len=32 hi=32 hi1=1 hi0=1 src=512 dst_seg=6 dst=64 wait=7 signal=8       # 13
CANCEL point=2                                                              # 14
ST2 len=32 hi=32 hi1=1 hi0=1 src_seg=6 src=64 dst_seg=3 wait=8              # 15
END
ST2 len=32 hi=32 hi1=1 hi0=1 src_seg=6 src=64 dst_seg=3 dst=32              # 17: the second job
END
"""
ROW = 4 * TINY.out_channels


def _home() -> LiveRange:
    """The result in LV2."""
    return LiveRange(Space.LV2, 6, 64, 32, dirty=True)


def _weights(rng: np.random.Generator) -> bytes:
    values = {"hi": 127, "lo": -128}
    header = b"".join(values.get(name, 0).to_bytes(size, "little", signed=True) for name, size, _ in VEC_HEADER)
    table = np.zeros(TINY.out_channels, [("bias", "<i4"), ("scale", "<f4")])
    table["bias"], table["scale"] = rng.integers(-99, 99, TINY.out_channels), 0.05
    return header.ljust(TINY.vec_header_bytes, b"\0") + table.tobytes() + rng.integers(0, 16, 32, np.uint8).tobytes()


def _image() -> Image:
    code = b"".join(insn.encode() for insn in assemble(PROGRAM))
    weights = _weights(np.random.default_rng(3))
    first = CancelPoint(
        point=0, job=0, pc=9, reload=[3, 4, 5, 6, 7], semaphores=[(3, 1), (4, 1)],
        live=[
            LiveRange(Space.LV0_ACC, 0, 0, 4 * ROW, dirty=True),
            LiveRange(Space.LV0_ACT, 0, 0, 16, dirty=False),
            LiveRange(Space.LV0_WGT, 0, 0, 16, dirty=False),
            LiveRange(Space.LV1, 0, 1024, 96, dirty=False),
            LiveRange(Space.LV2, 6, 0, 16, dirty=False, source_segment=2),
            LiveRange(Space.LV2, 7, 0, 128, dirty=False, source_segment=1),
        ],
    )  # fmt: skip
    second = CancelPoint(
        point=1, job=0, pc=12, live=[LiveRange(Space.LV1, 0, 512, 32, dirty=True)], semaphores=[(7, 1)]
    )  # fmt: skip
    third = CancelPoint(point=2, job=0, pc=14, live=[_home()], semaphores=[(8, 1)])
    meta = ImageMeta(
        model="small", params=TINY.to_dict(), segment_sizes=[len(code), 128, 16, 64, 0, 0, 128, 128],
        tensors=[TensorInfo("x", "uint8", [16], 2, 0), TensorInfo("y", "int8", [64], 3, 0)],
        inputs=[PortInfo("x", "uint8", [16], "x", [0])], outputs=[PortInfo("y", "int8", [64], "y", [0])],
        layers=[LayerInfo("l", "conv", [], "y")],
        jobs=[JobInfo(0, 0, 2, 0, window=(0, 128)), JobInfo(0, 0, 17, live=[_home()])],
        steps=[StepInfo("jobs", 0, 2)], cancel_points=[first, second, third],
    )  # fmt: skip
    image = Image(meta, code, weights)
    image.validate()
    return image


X = {"x": np.arange(16, dtype=np.uint8)}


def _kinds(report: Report) -> set[tuple[str, str]]:
    return {(finding.place, finding.kind) for finding in report.findings}


@pytest.mark.parametrize("seed", range(3))
def test_complete_declarations_pass(seed):
    image = _image()
    assert np.unique(run_image(image, X)["y"]).size > 10
    report = check_points(image, X, seed=seed)
    assert report.ok, report
    assert report.jobs == 2 and [p.point for p in report.points] == [0, 1, 2]
    assert [p.dirty for p in report.points] == [4 * ROW, 32, 32]
    # Two PEs hold 16 bytes of activations and of weights each; ranges read by the reload alone are not needed after it.
    assert [p.needed for p in report.points] == [4 * ROW + 64 + 96, 32, 32]


def test_points_can_be_selected():
    report = check_points(_image(), X, points=[1])
    assert report.ok and [p.point for p in report.points] == [1]


@pytest.mark.parametrize("left_out", range(6))
def test_a_live_range_left_out_at_a_point_is_found(left_out):
    image = _image()
    dropped = image.meta.cancel_points[0].live.pop(left_out)
    report = check_points(image, X)
    kinds = {"lost", "result"}
    if dropped.space in (Space.LV0_ACT, Space.LV0_WGT, Space.LV1):
        kinds = {"undeclared"}  # the reload brings it back all the same
    elif dropped.dirty:
        kinds |= {"undeclared"}
    assert _kinds(report) == {("point 0 (job 0)", kind) for kind in kinds}, report


@pytest.mark.parametrize("point", [1, 2])
def test_a_dirty_range_left_out_is_found(point):
    image = _image()
    image.meta.cancel_points[point].live.clear()
    place = f"point {point} (job 0)"
    assert _kinds(check_points(image, X)) == {(place, "undeclared"), (place, "lost"), (place, "result")}


def test_a_range_that_is_too_short_is_found_to_the_byte():
    image = _image()
    image.meta.cancel_points[1].live[0].size = 31
    report = check_points(image, X)
    assert "1 bytes of lv1 of engine 0 from 543 to 543, read by ST1 at PC 13" in str(report)


@pytest.mark.parametrize("pc", [3, 4, 5, 6, 7])
def test_a_load_left_out_of_the_reload_is_found(pc):
    image = _image()
    image.meta.cancel_points[0].reload.remove(pc)
    assert _kinds(check_points(image, X)) == {("point 0 (job 0)", "lost"), ("point 0 (job 0)", "result")}


def test_a_reload_may_bring_back_its_own_source_in_lv2():
    image = _image()
    image.meta.cancel_points[0].live.pop(4)
    image.meta.cancel_points[0].reload.insert(0, 2)
    assert check_points(image, X).ok


def test_a_reload_in_the_wrong_order_is_found():
    image = _image()
    image.meta.cancel_points[0].reload.sort(reverse=True)
    assert ("point 0 (job 0)", "lost") in _kinds(check_points(image, X))


def test_what_is_computed_cannot_be_called_clean():
    image = _image()
    image.meta.cancel_points[2].live[0].dirty = False
    assert ("point 2 (job 0)", "lost") in _kinds(check_points(image, X))


@pytest.mark.parametrize(
    ("semaphores", "kinds"),
    [
        ([(3, 1)], {"semaphores", "fault"}),
        ([(3, 1), (4, 2)], {"semaphores", "result"}),
        ([(3, 1), (4, 1), (32, 1)], {"declaration"}),
    ],
)
def test_wrong_semaphores_are_found(semaphores, kinds):
    image = _image()
    image.meta.cancel_points[0].semaphores = semaphores
    assert _kinds(check_points(image, X)) == {("point 0 (job 0)", kind) for kind in kinds}


def test_a_home_in_lv2_left_out_at_the_start_of_a_job_is_found():
    image = _image()
    image.meta.jobs[1].live.clear()
    assert _kinds(check_points(image, X)) == {("job 1", kind) for kind in ("undeclared", "lost", "result")}


@pytest.mark.parametrize(
    ("live", "text"),
    [
        (LiveRange(Space.LV1, 0, TINY.lv1_bytes - 1, 2, True), r"leaves lv1 \(16384 bytes\)"),
        (LiveRange(Space.LV0_WGT, 0, 0, 4, True), "no instruction reads it back"),
        (LiveRange(Space.LV2, 2, 0, 4, True), "segment 2, which lies in DRAM"),
        (LiveRange(Space.LV2, 6, 0, 32, False, 2, 0), r"leaves segment 2 \(16 bytes\)"),
    ],
)
def test_impossible_ranges_are_named(live, text):
    image = _image()
    image.meta.cancel_points[1].live.append(live)
    report = check_points(image, X)
    assert [f.kind for f in report.findings] == ["declaration"]
    assert re.search(text, str(report))


TWO_ENGINES = """
CANCEL point=0                                                              # 0: job 0
LD2 len=16 hi=16 hi1=1 hi0=1 src_seg=2 dst_seg=6
END
LD2 len=16 hi=16 hi1=1 hi0=1 src_seg=2 dst_seg=6 dst=16                     # 3: job 1, on the other engine
END
ST2 len=32 hi=32 hi1=1 hi0=1 src_seg=6 dst_seg=3                            # 5: job 2, after job 1
END
"""


def _two_engines(live: list[LiveRange]) -> Image:
    image = _image()
    image.code = b"".join(insn.encode() for insn in assemble(TWO_ENGINES))
    meta = image.meta
    meta.params, meta.events = TINY.replace(engines=2).to_dict(), 1
    home = LiveRange(Space.LV2, 6, 0, 32, dirty=True)
    meta.jobs = [
        JobInfo(0, 0, 0),
        JobInfo(0, 1, 3, signal=0, live=[LiveRange(Space.LV2, 6, 0, 16, dirty=True)]),
        JobInfo(0, 0, 5, waits=[(0, 1)], live=[home]),
    ]
    meta.steps, meta.cancel_points = [StepInfo("jobs", 0, 3)], [CancelPoint(point=0, job=0, pc=0, live=live)]
    image.validate()
    return image


def test_another_engine_may_be_ahead():
    complete = [LiveRange(Space.LV2, 6, 16, 16, dirty=True)]
    for lagging in (None, 1):
        assert check_points(_two_engines([]), X, lagging_engine=lagging).ok
    assert [str(f) for f in check_points(_two_engines([]), X, lagging_engine=0).findings if f.kind == "undeclared"] == [
        "job 0: undeclared: 16 bytes of lv2 from 16 to 31, read by ST2 at PC 5",
        "point 0 (job 0): undeclared: 16 bytes of lv2 from 16 to 31, read by ST2 at PC 5",
    ]
    image = _two_engines(complete)
    image.meta.jobs[0].live = complete
    assert check_points(image, X, lagging_engine=0).ok


def test_tables_that_do_not_match_the_code_are_found():
    image = _image()
    image.meta.cancel_points[1].pc = 13
    texts = [finding.text for finding in check_points(image, X).findings]
    assert texts[0].startswith("point 1 of the table is at PC 13, where ST1")
    assert texts[1] == "CANCEL point=1 at PC 12 of job 0 is not in the table"
    image = _image()
    image.meta.cancel_points[0].reload.append(8)
    assert [f.text for f in check_points(image, X).findings] == ["reload of PC 8: MAC is not a load"]
