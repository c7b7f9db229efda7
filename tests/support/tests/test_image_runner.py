"""Whole images on the functional model: steps, inputs, early prologues."""

import numpy as np
import pytest

from hw.contract.assembly import assemble
from hw.contract.params import preset
from hw.image.image import Image, ImageMeta, JobInfo, LayerInfo, PortInfo, StepInfo, TensorInfo
from tests.support.image_runner import HostMissing, run_image

TINY = preset("tiny")
RUN = "len=16 hi=16 hi1=1 hi0=1"


def _image(window_after: int, host: bool = False) -> Image:
    """Two jobs that bring different weights to the same window and store them."""
    text = ""
    for i in range(2):
        text += f"LD2 {RUN} src_seg=1 dst_seg=7 src={16 * i}\nEND\nST2 {RUN} src_seg=7 dst_seg=3 dst={16 * i}\nEND\n"
    code = b"".join(insn.encode() for insn in assemble(text))
    meta = ImageMeta(
        model="two", params=TINY.to_dict(), segment_sizes=[len(code), 32, 16, 32, 0, 0, 64, 64],
        tensors=[TensorInfo("x", "uint8", [16], 2, 0), TensorInfo("y", "uint8", [32], 3, 0)],
        inputs=[PortInfo("x", "uint8", [16], "x", [0])], outputs=[PortInfo("y", "uint8", [32], "y", [0])],
        layers=[LayerInfo("l", "move", [], "y")],
        jobs=[JobInfo(0, 0, 2, 0, 0), JobInfo(0, 0, 6, 4, window_after)],
        steps=[StepInfo("jobs", 0, 2)],
    )  # fmt: skip
    models = []
    if host:
        models = [b"model"]
        meta.host_sizes = [5]
        meta.steps.append(StepInfo("host", host=0, inputs=["y"], outputs=["y"], reason="no unit does it"))
    image = Image(meta, code, bytes(range(32)), models)
    image.validate()
    return image


X = {"x": np.zeros(16, np.uint8)}


def test_jobs_run_in_order():
    assert run_image(_image(window_after=1), X)["y"].tolist() == list(range(32))


def test_a_prologue_that_may_run_too_early_does():
    assert run_image(_image(window_after=0), X)["y"].tolist() == [*range(16, 32)] * 2


def test_host_steps_read_and_write_tensors():
    calls = []

    def host(model, arrays):
        calls.append(model)
        return {"y": arrays["y"][::-1]}

    assert run_image(_image(1, host=True), X, host)["y"].tolist() == list(range(31, -1, -1))
    assert calls == [b"model"]
    with pytest.raises(HostMissing, match="no unit does it"):
        run_image(_image(1, host=True), X)


def test_a_wrong_input_is_refused():
    with pytest.raises(ValueError, match=r"input 'x' is stored as uint8 \[16\], not float32 \[16\]"):
        run_image(_image(1), {"x": np.zeros(16, np.float32)})
