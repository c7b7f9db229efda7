"""The check of weight windows finds those that come too early, lie on a tensor, or meet each other."""

import dataclasses

import pytest

from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import preset
from hw.image.image import Image
from tests.support.check.windows import window_clashes
from tests.support.graphs import GraphBuilder, random_inputs

TWO = dataclasses.replace(preset("tiny"), name="two", engines=2)


def _image() -> tuple[Image, dict]:
    """Five layers on two engines; the windows of the later ones lie on tensors of the earlier ones."""
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 24, 24, 8)), 48, (1, 1))
    for outs in (64, 64, 64, 16):
        x = make.conv(x, outs, strides=(1, 1) if outs == 16 else (2, 2), pads=(1, 1, 1, 1))
    make.output(x)
    image, _ = build(make.graph, TWO, Options(engines=2, lv2_limit=80_000, cancel_interval=0))
    return Image.from_bytes(image.to_bytes()), random_inputs(make.graph, 1)


def _moved(image: Image, job: int, start: int) -> None:
    """Put the window of a job elsewhere: in the table, its prologue and its body."""
    info = image.meta.jobs[job]
    shift, code = start - info.window[0], bytearray(image.code)
    for pc in (info.prologue_pc, info.body_pc):
        while (insn := Insn.decode(code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])).op is not Op.END:
            for end in ("src", "dst"):
                if insn.op in (Op.LD2, Op.LD1) and insn.fields.get(f"{end}_seg") == 7:
                    insn = Insn(insn.op, insn.fields | {end: insn[end] + shift})
            code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES] = insn.encode()
            pc += 1
    info.window = (start, info.window[1])
    image.code = bytes(code)


def test_compiled_windows_lie_on_tensors_that_nobody_needs():
    image, inputs = _image()
    assert any(size and start < image.meta.segment_sizes[6] for start, size in (job.window for job in image.meta.jobs))
    assert window_clashes(image, inputs) == []


def test_a_load_that_may_begin_too_early_is_found():
    image, inputs = _image()
    waiting = [number for number, job in enumerate(image.meta.jobs) if job.window_after and job.window[1]]
    found = 0
    for number in waiting:
        job = image.meta.jobs[number]
        kept, job.window_after = job.window_after, 0
        problems = window_clashes(image, inputs)
        assert all(f"job {number} " in text or f"{number} and" in text or f"and {number} " in text for text in problems)
        found += bool(problems)
        job.window_after = kept
    assert found > len(waiting) // 2  # some wait for nobody of this inference


@pytest.mark.parametrize("behind", [1, 2])
def test_a_window_on_that_of_a_job_nearby_is_found(behind):
    image, inputs = _image()
    number = len(image.meta.jobs) - 1 - behind
    _moved(image, number, image.meta.jobs[number + behind].window[0])
    assert any("windows" in text for text in window_clashes(image, inputs))


def test_a_window_on_a_tensor_of_its_layer_is_found():
    image, inputs = _image()
    live = image.meta.jobs[-1].live[0]
    _moved(image, len(image.meta.jobs) - 1, live.offset)
    assert any("uses the weight window" in text or "own" in text for text in window_clashes(image, inputs))
