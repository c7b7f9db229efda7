"""Range kernels in a model with a dynamic dimension: built once, relocated for each call, exact kernels before them."""

import numpy as np
import onnx
import pytest

import caesura
from caesura.lengths import kernel_source
from compiler import golden
from sw.runtime import InputError
from tests.support.length_nets import conv_net

SAME = ((1, 1), (1, 1))


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache folder of the test's own, and the models' folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def path(folder):
    onnx.save(conv_net(*SAME), folder / "net.onnx")
    return folder / "net.onnx"


@pytest.fixture
def device():
    with caesura.open("tiny", "model") as device:
        yield device


def check(model, length):
    """Call it, compare with onnxruntime; returns how it was served."""
    x = np.random.default_rng(length).integers(-128, 128, (1, 4, length)).astype(np.int8)
    (wanted,) = golden.golden_outputs(model.dimension.fixed(length), {"x": x}).values()
    np.testing.assert_array_equal(model(x), wanted)
    assert (model.last.length, model.last.kernel_length) == (length, length)
    return model.last.how


def no_compiler(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something is compiled")

    monkeypatch.setattr(kernel_source, "compile_model", refuse)
    monkeypatch.setattr(kernel_source, "compile_range", refuse)


def test_every_length_without_waiting(path, device, monkeypatch):
    """No call compiles; an exact kernel goes before the range kernel; lengths share their weights in memory."""
    free = device.driver.dram.free_bytes
    with caesura.dynamic(path, device, range(1, 41), ladder=(32,)) as model:
        model.prepare(8)
        model.prepare_range(range(4, 41))
        assert check(model, 3) in ("compiled", "ladder")
        no_compiler(monkeypatch)
        model.prepare_range(range(4, 41))  # it is there
        served = [check(model, length) for length in range(4, 41)]
        assert [number + 4 for number, how in enumerate(served) if how == "exact"] == [8]
        assert set(served) == {"exact", "range"} and len(model.kernels) <= 16
        first, second = model.at(20).loaded, model.at(21).loaded
        assert first.image.weights is second.image.weights and first.segments[1] == second.segments[1]
    assert device.driver.dram.free_bytes == free


def test_the_exact_kernel_comes_in_the_background(path, device):
    with caesura.dynamic(path, device, range(4, 33), ladder=(), background=True) as model:
        model.prepare_range()
        assert check(model, 9) == "range"
        model._makers.want(model.demand, 9).result()
        assert check(model, 9) == "exact"


def test_it_comes_from_the_cache_folder(path, device, folder, monkeypatch):
    """Unless the file is damaged: then it is made again. Another step is another kernel."""
    with caesura.dynamic(path, device, range(4, 33)) as model:
        model.prepare_range()
    (file,) = (folder / "cache" / "caesura" / "kernels").glob("*.crng")
    with monkeypatch.context() as patched, caesura.dynamic(path, device, range(4, 33)) as model:
        no_compiler(patched)
        model.prepare_range()
        assert check(model, 17) == "range"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    with caesura.dynamic(path, device, range(4, 33)) as model:
        model.prepare_range()
        assert check(model, 17) == "range"
    assert file.read_bytes()[-1] == raw[-1] ^ 1
    with caesura.dynamic(path, device, range(4, 33)) as model:
        model.prepare_range(range(4, 33, 4))
        assert (check(model, 32), check(model, 31)) == ("range", "compiled")


def test_what_is_asked_for_must_be_possible(path, device):
    with caesura.dynamic(path, device, range(4, 33)) as model:
        with pytest.raises(InputError, match=r"length 3 .* is not in the range"):
            model.prepare_range(range(3, 9))
        with pytest.raises(caesura.api.UsageError, match="lengths must be"):
            model.prepare_range(range(4, 4))
        model.prepare_range(range(5, 6))
        assert check(model, 5) == "exact"


def test_an_error_names_model_and_length(folder, device):
    onnx.save(conv_net((0, 0)), folder / "valid.onnx")
    with caesura.dynamic(folder / "valid.onnx", device, range(1, 9)) as model:
        with pytest.raises(caesura.CompileError, match="model 'valid' has no range kernel: length 2 of dimension 'L'"):
            model.prepare_range()
        model.prepare_range(range(3, 9))
        assert check(model, 4) == "range"


def test_a_run_time_takes_it_as_a_model(path, device):
    """Requests of several lengths preempt each other, relocated from one kernel."""
    with caesura.dynamic(path, device, range(4, 33)) as model:
        model.prepare_range()
        runtime = caesura.Runtime(device, preemptive=True)
        lengths = (30, 8, 31, 9)
        given = [np.random.default_rng(n).integers(-128, 128, (1, 4, n)).astype(np.int8) for n in lengths]
        requests = [runtime.submit(model, x, priority=number) for number, x in enumerate(given)]
        runtime.run_until_done()
        for request, x in zip(requests, given, strict=True):
            (wanted,) = golden.golden_outputs(model.dimension.fixed(x.shape[2]), {"x": x}).values()
            np.testing.assert_array_equal(*request.result().values(), wanted)
