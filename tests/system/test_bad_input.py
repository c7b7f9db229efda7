"""What a user can get wrong: one clear message each, and the device runs the digits network correctly afterwards."""

import random

import numpy as np
import onnx
import pytest

import caesura
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from tests.support.images import copy_image
from tests.support.onnx_models import Net
from tests.system.command import caesura_command, run_report

TINY = caesura.PRESETS["tiny"]


@pytest.fixture(scope="module")
def digits():
    return caesura.compile(MODEL, TINY)


@pytest.fixture(scope="module")
def opened():
    with caesura.open(TINY) as device:
        yield device


@pytest.fixture
def device(opened, digits):
    """A device that must still work after the test."""
    yield opened
    sample = np.load(SAMPLES)["input"][:1]
    model = opened.load(digits)
    np.testing.assert_array_equal(model(sample), reference_logits(MODEL, sample))
    opened.unload(model)


def failure(*arguments):
    """The one message of a command that fails."""
    code, out, err = caesura_command(*arguments)
    assert (code, out) == (2, "") and err.startswith("error: ") and "Traceback" not in err
    return err


def test_truncated_images(device, digits, tmp_path):
    raw, path = digits.to_bytes(), tmp_path / "short.cimg"
    for size in (0, 3, 40, 64, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:size])
        with pytest.raises(caesura.ImageError, match=r"short\.cimg: .*(not a Caesura image|truncated)"):
            device.load(path)
    assert "truncated" in failure("run", path)


def test_images_with_flipped_bits(device, digits, tmp_path):
    raw, path, rng = digits.to_bytes(), tmp_path / "flipped.cimg", random.Random(1)
    for bit in [*range(64 * 8), *(rng.randrange(len(raw) * 8) for _ in range(100))]:
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(caesura.ImageError, match=r"flipped\.cimg: "):
            device.load(path)
    assert "damaged; compile the model again" in failure("run", path)


def test_image_for_other_parameters(device, tmp_path):
    for params in (caesura.PRESETS["base"], TINY.replace(lv2_bytes=TINY.lv2_bytes // 2)):
        with pytest.raises(caesura.ImageError, match=r"built for preset '.*compile it for this device"):
            device.load(caesura.compile(MODEL, params))
    caesura.compile(MODEL, "base").save(tmp_path / "base.cimg")
    assert "built for preset 'base'" in failure("run", tmp_path / "base.cimg", "--preset", "tiny")


@pytest.mark.parametrize(
    "inputs, message",
    [
        (np.zeros((1, 8, 8), np.float32), r"input 'image': shape \[1, 8, 8\], expected \[1, 1, 8, 8\]"),
        (np.zeros((1, 1, 8, 8), np.int8), "input 'image': dtype int8, expected float32"),
        ({"picture": np.zeros((1, 1, 8, 8), np.float32)}, "input 'image' is missing; model 'digits' takes 'image'"),
        ({"image": np.zeros((1, 1, 8, 8), np.float32), "mask": 0}, "input 'mask' does not exist"),
    ],
    ids=["shape", "dtype", "name", "extra"],
)
def test_inputs_the_model_does_not_take(device, digits, inputs, message):
    model = device.load(digits)
    with pytest.raises(caesura.InputError, match=message):
        model(inputs)
    device.unload(model)


def test_input_file_of_another_model(tmp_path):
    np.savez(tmp_path / "x.npz", image=np.zeros((1, 3, 8, 8), np.float32))
    message = failure("run", MODEL, "--input", tmp_path / "x.npz")
    assert "x.npz: input 'image': shape [1, 3, 8, 8], expected [1, 1, 8, 8]" in message


def unsupported_model(path):
    net = Net()
    x = net.dq(net.input((1, 4, 4, 4)), 0.031)
    x = net.dq(net.q(net.conv(x, 0.031, (8, 4, 1, 1)), 0.9), 0.9)
    x = net.node("CumSum", [x, net.const(2, np.int64)], name="running")
    onnx.save(net.model(net.q(x, 3.0)), path)


def test_unsupported_nodes_are_named_and_run_with_fallback(tmp_path):
    path = tmp_path / "odd.onnx"
    unsupported_model(path)
    message = failure("run", path)
    assert "CumSum 'running': " in message and "--fallback" in message
    report = run_report(path, "--fallback", "--check")
    assert report["check"]["ok"]
    assert [kind for layer in report["layers"] if (kind := layer["kind"]) == "conv"] == ["conv"]
    (step,) = report["host_steps"]
    assert "CumSum" in step
    assert 1000 < report["host_cycles"] < report["latency_cycles"]  # a fallback is not free
    _, out, _ = caesura_command("run", str(path), "--fallback")
    assert f"of which {report['host_cycles']:,} for steps on the CPU" in " ".join(out.split())


def test_presets_and_parameters_that_do_not_exist(tmp_path):
    message = "no preset named 'huge'; known are nano, tiny, ecp5, base"
    for call in (lambda: caesura.open("huge"), lambda: caesura.compile(MODEL, "huge")):
        with pytest.raises(caesura.ParamError, match=message):
            call()
    assert message in failure("run", MODEL, "--preset", "huge")
    with pytest.raises(caesura.ParamError, match="engines must be 1 to 8, not 9"):
        TINY.replace(engines=9)


def test_illegal_instruction_in_an_image(device, tmp_path):
    image = copy_image(TINY)
    image.code = image.code[:64] + b"\x99" + image.code[65:]
    image.save(tmp_path / "illegal.cimg")
    with pytest.raises(caesura.ImageError, match="code, PC 1: illegal opcode 0x99"):
        device.load(tmp_path / "illegal.cimg")
    assert "code, PC 1: illegal opcode 0x99" in failure("run", tmp_path / "illegal.cimg")


@pytest.mark.parametrize("command", ["profile", "retime"])
def test_a_batch_that_nobody_set_is_told_with_the_flag(tmp_path, command):
    net = Net()
    model = net.model(net.q(net.conv(net.dq(net.input((1, 4, 8, 8)), 0.031), 0.031, (8, 4, 3, 3)), 0.9))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, tmp_path / "m.onnx")
    _, _, err = caesura_command(command, tmp_path / "m.onnx", "--backend", "model") if command == "profile" else (
        caesura_command(command, tmp_path / "m.onnx")
    )  # fmt: skip
    assert "--batch N sets it" in " ".join(err.split())
