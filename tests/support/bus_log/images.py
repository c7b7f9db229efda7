"""Images written by hand that only the scenarios of the log need: they do not change when the compiler does."""

from hw.contract.assembly import assemble
from hw.contract.isa import Insn, Op
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image.image import CancelPoint, Image, JobInfo, LayerInfo, LiveRange
from tests.support.images import SIZE, copy_image, encode
from tests.support.preempt_images import WEIGHT

_BYTES = f"len={SIZE} hi={SIZE} hi1=1 hi0=1"
_WEIGHTS = f"len={WEIGHT} hi={WEIGHT} hi1=1 hi0=1"
_PART = 1024  #: bytes of segment 7 of each engine of a placed image


def keeping_image(params: SocParams, *, jobs: int = 3, name: str = "keep", windows: int | None = None) -> Image:
    """An int8 model that returns its input, whose jobs have weights that may stay in LV2 for the next inference; with
    fewer ``windows`` than ``jobs``, these take turns."""
    image, code = copy_image(params, name=name), list[Insn]()
    table, points = list[JobInfo](), list[CancelPoint]()
    for j in range(jobs):
        window, prologue = SIZE + j % (windows or jobs) * WEIGHT, len(code)
        code += assemble(f"LD2 src_seg=1 dst_seg=7 src={j * WEIGHT} dst={window} {_WEIGHTS}\nEND")
        body = len(code)
        code += assemble(f"LD2 src_seg=2 dst_seg=6 {_BYTES} signal=0\nST2 src_seg=6 dst_seg=3 {_BYTES} wait=0 signal=1")
        live = [LiveRange(Space.LV2, 7, window, WEIGHT, False, 1, j * WEIGHT)]
        points.append(CancelPoint(j, j, len(code), live=live, semaphores=[(1, 1)]))
        code.append(Insn(Op.CANCEL, {"point": j}))
        code += assemble(f"ST2 src_seg=7 src={window} dst_seg=4 dst={j * WEIGHT} {_WEIGHTS} wait=1\nEND")
        after = windows if windows and j >= windows else 0
        table.append(
            JobInfo(
                layer=min(j, 1), engine=0, body_pc=body, prologue_pc=prologue, window=(window, WEIGHT),
                window_after=after,
            )
        )  # fmt: skip
    meta, raw = image.meta, encode(code)
    weights = bytes((7 * i + 1) % 256 for i in range(jobs * WEIGHT))
    meta.segment_sizes = [len(raw), len(weights), SIZE, SIZE, len(weights), 0, SIZE, SIZE + jobs * WEIGHT]
    meta.overlaid, meta.weights_only = True, (0, 0) if windows else (SIZE, jobs * WEIGHT)
    meta.jobs, meta.cancel_points = table, points
    meta.steps[0].count = jobs
    return Image(meta=meta, code=raw, weights=weights)


def placed_image(params: SocParams, *, parts: int = 2, name: str = "placed", branches: int = 2) -> Image:
    """An int8 model that returns its input, by layers of ``branches`` that any engine may run; each has weights that
    its prologue loads, and a cancellation point."""
    edges = [[], *([0] for _ in range(branches)), *([i + 1] for i in range(branches))]
    edges.append(list(range(branches + 1, 2 * branches + 1)))
    image, code = copy_image(params, name=name), list[Insn]()
    table, points, layers = list[JobInfo](), list[CancelPoint](), list[LayerInfo]()
    for j, after in enumerate(edges):
        window, home = j % 3 * WEIGHT, j * SIZE
        prologue = len(code)
        code += assemble(f"LD2 src_seg=1 dst_seg=7 src={j * WEIGHT} dst={window} {_WEIGHTS}\nEND")
        body = len(code)
        code += assemble(f"LD2 src_seg=2 dst_seg=6 dst={home} {_BYTES} signal=0")
        live = [LiveRange(Space.LV2, 6, home, SIZE, False, 2, 0)]
        live.append(LiveRange(Space.LV2, 7, window, WEIGHT, False, 1, j * WEIGHT))
        points.append(CancelPoint(j, j, len(code), live=live, semaphores=[(0, 1)]))
        code.append(Insn(Op.CANCEL, {"point": j}))
        code += assemble(
            f"ST2 src_seg=6 src={home} dst_seg=3 {_BYTES} wait=0\n"
            f"ST2 src_seg=7 src={window} dst_seg=4 dst={j * WEIGHT} {_WEIGHTS}\nEND"
        )
        layers.append(LayerInfo(name=f"layer{j}", kind="copy", nodes=["a"], output="y"))
        table.append(
            JobInfo(
                layer=j, engine=0, body_pc=body, prologue_pc=prologue, window=(window, WEIGHT), after=after,
                window_after=3 if j >= 3 else 0,
            )
        )  # fmt: skip
    meta, raw, count = image.meta, encode(code), len(edges)
    weights = bytes((5 * i + 3) % 256 for i in range(count * WEIGHT))
    meta.segment_sizes = [len(raw), len(weights), SIZE, SIZE, len(weights), 0, count * SIZE, parts * _PART]
    meta.jobs, meta.cancel_points, meta.layers, meta.parts, meta.events = table, points, layers, parts, 0
    meta.steps[0].count = count
    return Image(meta=meta, code=raw, weights=weights)
