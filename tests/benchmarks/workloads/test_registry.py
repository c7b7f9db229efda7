"""Workloads by name, and the cache that holds them."""

import subprocess
import sys

import numpy as np
import onnx
import pytest

from benchmarks.workloads import UnknownWorkload, cache, inputs, names, registry, workload

SMALL_CONV = "conv_4x6x6_8_k3_s1_p1"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_folder(home, monkeypatch):
    assert cache.folder() == home / "caesura" / "workloads"
    monkeypatch.setenv("HOME", str(home / "user"))
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache.folder() == home / "user" / ".cache" / "caesura" / "workloads"


def test_generated_once_and_whole(home):
    path = workload(SMALL_CONV)
    onnx.checker.check_model(str(path))
    written = path.stat().st_mtime_ns
    assert workload(SMALL_CONV) == path
    assert path.stat().st_mtime_ns == written
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_regenerated_equal_and_apart_by_version(monkeypatch):
    path = workload(SMALL_CONV)
    content = path.read_bytes()
    path.unlink()
    assert workload(SMALL_CONV).read_bytes() == content
    monkeypatch.setattr(registry, "VERSION", registry.VERSION + 1)
    assert workload(SMALL_CONV) != path


def test_failed_generator_leaves_nothing(home):
    def fail(path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.cached("broken", 1, fail)
    assert list(cache.folder().iterdir()) == []
    path = cache.cached("broken", 1, lambda path: path.write_bytes(b"whole"))
    assert path.read_bytes() == b"whole"


def test_names_are_known():
    listed = names()
    assert {"resnet50", "squeezenet", "mobilenetv2", "gemm_1024x1024x1024", "gemm_512x512x512"} <= set(listed)
    assert "conv_3x224x224_64_k7_s2_p3" in listed
    assert len(set(listed)) == len(listed)
    for name in listed:
        (values,) = inputs(name).values()
        assert values.shape[0] in (1, 512, 1024)


def test_inputs_are_seeded_and_fit_the_model():
    graph = onnx.load(workload(SMALL_CONV)).graph
    values = inputs(SMALL_CONV)
    assert list(values) == [entry.name for entry in graph.input]
    assert [dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim] == list(values["input"].shape)
    assert np.array_equal(values["input"], inputs(SMALL_CONV)["input"])
    assert not np.array_equal(values["input"], inputs(SMALL_CONV, index=1)["input"])


def test_image_inputs():
    (photo,) = inputs("squeezenet").values()
    assert (photo.shape, photo.dtype) == ((1, 3, 224, 224), np.float32)
    assert photo.std() == pytest.approx(1, rel=1e-3)
    neighbours = np.corrcoef(photo[..., :-1].ravel(), photo[..., 1:].ravel())[0, 1]
    assert neighbours > 0.6


def test_network_by_name(monkeypatch):
    small = {"squeezenet": lambda: registry.networks.squeezenet(width=1 / 8, size=32, classes=10)}
    monkeypatch.setattr(registry, "NETWORKS", small)
    graph = onnx.load(workload("squeezenet")).graph
    assert [entry.name for entry in graph.input] == list(inputs("squeezenet"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet5", "did you mean resnet50"),
        ("gemm_1024x1024", "gemm_1024x1024x1024"),
        ("zzz", "networks are resnet50, squeezenet"),
        ("conv_64x56x56_64_k3_s1_p1_g3", "3 groups do not divide 64 input and 64 output channels"),
        ("conv_4x2x2_4_k5_s1_p1", "5x5 kernel is larger than the padded input"),
        ("conv_4x4x4_4_k1_s0_p0", "must be at least 1"),
        ("gemm_0x4x4", "sizes must be at least 1"),
        ("gemm_99999x99999x99999", "the limit is 68719476736"),
    ],
)
@pytest.mark.parametrize("function", [workload, inputs])
def test_bad_names(function, name, message):
    with pytest.raises(UnknownWorkload, match=message):
        function(name)


def test_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.workloads", SMALL_CONV, "resnet5"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout.startswith(f"{SMALL_CONV}: ")
    assert done.stderr.startswith("error: no workload 'resnet5'")
