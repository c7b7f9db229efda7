"""Images for preemption tests: one that stands at every kind of cancellation point, one that overwrites everything."""

import numpy as np

from hw.contract.assembly import assemble
from hw.contract.isa import Insn, Op, VecOp
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.image import CancelPoint, Image, JobInfo, LiveRange
from tests.support.images import SIZE, copy_image, encode

WEIGHT = 64  #: bytes of weights of each job


def _plain(size: int = SIZE) -> str:
    return f"len={size} hi={size} hi1=1 hi0=1"


def walking_image(
    params: SocParams, *, jobs: int = 1, name: str = "walk", windows: tuple[int, int] = (4096, 1024),
    engines: int | None = None,
) -> Image:  # fmt: skip
    """An int8 model that returns its input, carried through LV2, LV1, accumulators, LV1 and LV2 with a cancellation
    point at each stage. Job i > 0 runs on the next of ``engines`` (default: all of the device), waits for the job
    before it and copies again from LV2. Segment 7 holds a word of weights per job, loaded by its prologue, that the
    body stores behind the output."""
    engines = engines or params.engines
    image = copy_image(params, name=name)
    row = params.out_channels * 4
    rows = -(-SIZE // row)
    raw = Insn(
        Op.VEC,
        {
            "op": VecOp.RAW, "src_acc": 1, "a_s1": 1, "d": 1024, "n2": 4, "n1": rows, "n0": params.vec_groups,
            "d_s2": params.vec_lanes, "d_s1": row, "d_s0": 4 * params.vec_lanes, "wait": 1 << 4, "signal": 1 << 5,
        },
    )  # fmt: skip
    code: list[Insn] = []
    points: list[CancelPoint] = []
    table: list[JobInfo] = []
    for j in range(jobs):
        prologue = len(code)
        code += assemble(f"LD2 src_seg=1 dst_seg=7 src={j * WEIGHT} dst={j * WEIGHT} {_plain(WEIGHT)}\nEND")
        body = len(code)
        _walk(code, points, j, raw)
        table.append(
            JobInfo(
                layer=min(j, 1), engine=j % engines, body_pc=body, prologue_pc=prologue,
                window=(j * WEIGHT, WEIGHT), waits=[(0, j)] if j and engines > 1 else [],
                signal=0 if engines > 1 else None, live=[LiveRange(Space.LV2, 6, 0, SIZE, True)] if j else [],
            )
        )  # fmt: skip
    raw_code = encode(code)
    weights = np.random.default_rng(jobs).integers(0, 256, jobs * WEIGHT).astype(np.uint8).tobytes()
    meta = image.meta
    meta.segment_sizes = [len(raw_code), len(weights), SIZE, SIZE, len(weights), 0, *windows]
    meta.jobs, meta.cancel_points, meta.events = table, points, int(engines > 1)
    meta.steps[0].count = jobs
    return Image(meta=meta, code=raw_code, weights=weights)


def _walk(code: list[Insn], points: list[CancelPoint], job: int, raw: Insn) -> None:
    """Append the body of one job and its points."""
    own = LiveRange(Space.LV2, 7, job * WEIGHT, WEIGHT, False, 1, job * WEIGHT)
    held = LiveRange(Space.LV2, 6, 0, SIZE, True) if job else LiveRange(Space.LV2, 6, 0, SIZE, False, 2, 0)

    def point(live: list[LiveRange], reload: list[int], counts: list[tuple[int, int]]) -> None:
        points.append(CancelPoint(len(points), job, len(code), live=live, reload=reload, semaphores=counts))
        code.append(Insn(Op.CANCEL, {"point": len(points) - 1}))

    load = "dst=3000 len=1 hi=1 hi1=1 hi0=1" if job else _plain()
    code += assemble(f"LD2 src_seg=2 dst_seg=6 {load} signal=0,1")
    point([held, own], [], [(0, 1), (1, 1)])
    code += assemble(f"LD1 src_seg=6 dst=512 {_plain()} wait=0 signal=2")
    point([held, own, LiveRange(Space.LV1, 0, 512, SIZE, False)], [len(code) - 1], [(1, 1), (2, 1)])
    code += assemble(f"LD0 src=512 {_plain()} space=ACC wait=2 signal=4")
    point([own, LiveRange(Space.LV0_ACC, 0, 0, SIZE, True)], [], [(1, 1), (4, 1)])
    code.append(raw)
    point([own, LiveRange(Space.LV1, 0, 1024, SIZE, True)], [], [(1, 1), (5, 1)])
    code += assemble(f"ST1 src=1024 dst_seg=6 dst=256 {_plain()} wait=5 signal=6")
    point([own, LiveRange(Space.LV2, 6, 256, SIZE, True)], [], [(1, 1), (6, 1)])
    code += assemble(
        f"ST2 src_seg=6 src=256 dst_seg=3 {_plain()} wait=6,1 signal=7\n"
        f"ST2 src_seg=7 src={job * WEIGHT} dst_seg=4 dst={job * WEIGHT} {_plain(WEIGHT)}\n"
        f"LD1 src_seg=6 src=256 dst=2048 {_plain()} wait=7 signal=8\n"
        f"ST1 src=2048 dst_seg=6 {_plain()} wait=8 signal=9"
    )
    point([LiveRange(Space.LV2, 6, 0, SIZE, True)], [], [(9, 1)])
    code += assemble("ST2 src_seg=6 dst_seg=3 len=1 hi=1 hi1=1 hi0=1 wait=9\nEND")


def smashing_image(
    params: SocParams, *, name: str = "smash", engines: int = 1, windows: tuple[int, int] | None = None
) -> Image:
    """An int8 model that returns its input after it has overwritten its LV2 windows, LV1 and all accumulators."""
    first, second = windows or (params.lv2_bytes // 2, params.lv2_bytes // 2)
    fill = "src_seg=2 fill=165 lo=0 hi=0"
    acc = params.lv0_acc_rows * params.out_channels * 4
    lines = []
    for segment, size in ((6, first), (7, second)):
        for at in range(0, size, 32768):
            lines.append(f"LD2 dst_seg={segment} dst={at} {fill} len={min(32768, size - at)}")
    lines[-1] += " signal=0"
    for at in range(0, params.lv1_bytes, 4096):
        lines.append(f"LD1 src_seg=6 dst={at} fill=90 lo=0 hi=0 len=4096")
    lines[-1 - (params.lv1_bytes - 1) // 4096] += " wait=0"
    lines[-1] += " signal=1"
    for at in range(0, acc, 4096):
        lines.append(f"LD0 src=0 dst={at} fill=60 lo=0 hi=0 len={min(4096, acc - at)} space=ACC")
    lines[-1 - (acc - 1) // 4096] += " wait=1"
    lines[-1] += " signal=2"
    body = "\n".join([*lines, f"LD2 src_seg=2 dst_seg=6 {_plain()} signal=3"])
    lanes, groups = params.vec_lanes, params.vec_groups
    done = f"VEC op=RAW src_acc=1 n2=4 n0={groups} d_s2={lanes} d_s0={4 * lanes} wait=2"
    body += f"\n{done}\nST2 src_seg=6 dst_seg=3 {_plain()} wait=3\nEND"
    image = copy_image(params, body, engines=engines, name=name)
    image.meta.segment_sizes[6:] = [first, second]
    return image
