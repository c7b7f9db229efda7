"""``InferenceSession``: a script written for onnxruntime, with another import."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import caesura
from examples.digits import MODEL, SAMPLES

CLASSES = 10
ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "scripts" / "evaluate_digits.py"


def accuracy(module, path: Path, images: np.ndarray, labels: np.ndarray, **machine: object) -> tuple[int, list]:
    """Such a script: it asks the model what it takes, runs it image by image, and counts what is right. Operators are
    not joined: products of joined ones saturate at 16 bits on processors without VNNI."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = module.InferenceSession(str(path), options, providers=["CPUExecutionProvider"], **machine)
    (given,), (made,) = session.get_inputs(), session.get_outputs()
    assert given.type == "tensor(float)" and made.shape[-1] == CLASSES
    scores = []
    for image in images:
        (found,) = session.run([made.name], {given.name: image.reshape(given.shape)})
        scores.append(found)
    everything = session.run(None, {given.name: images[-1].reshape(given.shape)})
    np.testing.assert_array_equal(everything[0], scores[-1])
    return sum(int(one.argmax()) == label for one, label in zip(scores, labels, strict=True)), scores


def test_a_script_ports_by_its_import():
    with np.load(SAMPLES) as held:
        images, labels = held["input"][:6].astype(np.float32), held["label"][:6]
    right, scores = accuracy(onnxruntime, MODEL, images, labels)
    found, ours = accuracy(caesura, MODEL, images, labels, backend="model")
    assert found == right >= 5
    np.testing.assert_array_equal(np.concatenate(ours), np.concatenate(scores))


def test_a_hundred_lines_port_by_one_of_them(tmp_path):
    """A whole script, run in a process of its own: what it prints is the same, to the last digit, and its scores."""
    text = SCRIPT.read_text()
    imported, ported = "import onnxruntime as ort\n", "import caesura as ort\n"
    assert text.count("onnxruntime as") == text.count(imported) == 1 and len(text.splitlines()) > 100
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])  # benches watch what runs
    printed, scores = [], []
    for name, program in (("theirs", text), ("ours", text.replace(imported, ported))):
        file, out = tmp_path / f"{name}.py", tmp_path / f"{name}.npz"
        file.write_text(program)
        ran = subprocess.run(
            [sys.executable, file, MODEL, SAMPLES, "--out", out], cwd=ROOT, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert ran.returncode == 0 and "latency ms" in ran.stderr, ran.stderr
        printed.append(ran.stdout)
        with np.load(out) as held:
            scores.append(held["scores"])
    assert printed[0] == printed[1] and "refused: True\nrefused: True" in printed[0]
    np.testing.assert_array_equal(*scores)


def test_a_model_may_come_as_bytes():
    with caesura.InferenceSession(MODEL.read_bytes(), backend="model") as session:
        (given,) = session.get_inputs()
        image = np.ones(given.shape, np.float32)
        with caesura.InferenceSession(MODEL, backend="model") as other:
            np.testing.assert_array_equal(session.run(None, {given.name: image}), other.run(None, {given.name: image}))


def test_errors_are_value_errors_that_name_the_input():
    with caesura.InferenceSession(MODEL, backend="model") as session:
        (given,) = session.get_inputs()
        image = np.zeros(given.shape, np.float32)
        assert session.stats is None and session.get_providers() == ["CaesuraExecutionProvider"]
        with pytest.raises(ValueError, match=f"input '{given.name}' is missing"):
            session.run(None, {})
        with pytest.raises(ValueError, match=r"shape \[1, 2\], expected"):
            session.run(None, {given.name: np.zeros((1, 2), np.float32)})
        with pytest.raises(ValueError, match="output 'scores' does not exist"):
            session.run(["scores"], {given.name: image})
        session.run(None, {given.name: image})
        assert session.stats is not None and session.stats.cycles > 0


def test_images_are_taken_as_they_are(tmp_path):
    image = caesura.compile(MODEL)
    image.save(tmp_path / "digits.cimg")
    outputs = []
    for source in (image, tmp_path / "digits.cimg"):
        with caesura.InferenceSession(source, backend="model") as session:
            (given,) = session.get_inputs()
            outputs.append(session.run(None, {given.name: np.ones(given.shape, np.float32)})[0])
    np.testing.assert_array_equal(*outputs)
