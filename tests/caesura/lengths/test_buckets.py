"""One image of an operation serves every length of a bucket, whether it was listed or not: exactly."""

import numpy as np
import onnx
import pytest

import caesura
from benchmarks.kernels_cases import dynamic_encoder
from caesura.lengths import OperationDemands, bucket_kernels, kernel_source, make_bucket, source_of
from compiler import LAST_ROW, CompileError, DynamicDimension, compile_model, import_model, operations_of, reference
from hw.contract.params import preset
from hw.image import Image, KernelArchive, ValueRange
from sim.backends import DEFAULT_BACKEND, MODEL
from sw.runtime import InputError
from tests.support.length_nets import conv_net
from tests.support.onnx_models import Net
from tests.support.operation_nets import X, attention, attention_net

TINY, WIDTH = preset("tiny"), 12
BUCKETS = (ValueRange(2, 9), ValueRange(10, 21))


def library(path, target, buckets=BUCKETS):
    """Write kernels for all operations; returns their archive."""
    operations = OperationDemands(source_of(path, TINY, dimension=None, engines=TINY.engines, cache=False))
    made = [
        make_bucket(operation, source, demand, bucket)
        for demand, source, operation in operations.different()
        for bucket in buckets
    ]
    archive = KernelArchive(tuple(kernel.content for kernel in made))
    target.write_bytes(archive.to_bytes())
    return archive


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    onnx.save(attention_net([(2, 8), (1, 20)], WIDTH), folder / "net.onnx")
    library(folder / "net.onnx", folder / "net.ckl")
    return folder


def tokens(length):
    return np.random.default_rng(length).integers(-128, 128, (1, length, WIDTH)).astype(np.int8)


def check(model, x, length):
    found = model.run(x)
    wanted = reference.run(import_model(model.dimension.fixed(length), fallback=True), x)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize(("backend", "step"), [(MODEL, 1), (DEFAULT_BACKEND, 5)])
def test_every_length_by_one_image_of_its_bucket(net, backend, step, monkeypatch):
    """Nothing is compiled or loaded again for a length of a bucket that has one loaded."""

    def refuse(*_, **__):
        raise AssertionError("something is compiled")

    for module, name in ((kernel_source, "compile_model"), (bucket_kernels, "compile_model")):
        monkeypatch.setattr(module, name, refuse)
    with (
        caesura.open(TINY, backend) as device,
        caesura.by_operation(net / "net.onnx", device, kernels=net / "net.ckl") as model,
    ):
        for bucket in BUCKETS:
            before = len(model.kernels)
            for length in range(bucket.low, bucket.high + 1, step):
                check(model, {"x": tokens(length)}, length)
                assert [each.kernel for each in model.last] == [bucket.written()] * 5
            assert len(model.kernels) == before + 5


def test_what_lies_behind_the_keys_does_not_count():
    """And a number that is one too large is another result: the test can fail."""
    (attention,) = [each for each in operations_of(DynamicDimension.of(attention_net([(2, 8)], WIDTH))) if each.sizes]
    image = compile_model(attention.dimension.fixed(9), TINY, last_row=True)
    rng, differ = np.random.default_rng(0), 0
    with caesura.open(TINY, MODEL) as device:
        model = device.load(image)
        for length in range(1, 10):
            whole = {name: rng.integers(-128, 128, (1, 9, 16)).astype(np.int8) for name in attention.inputs}
            given = {name: value[:, :length] for name, value in whole.items()}
            ((name, wanted),) = reference.run(import_model(attention.dimension.fixed(length)), given).items()
            kept = (slice(None),) * attention.axes[name] + (slice(length),)
            found, _ = model.run({**whole, LAST_ROW: np.array([length - 1])})
            np.testing.assert_array_equal(found[name][kept], wanted)
            if length < 9:
                found, _ = model.run({**whole, LAST_ROW: np.array([length])})
                differ += not np.array_equal(found[name][kept], wanted)
        assert differ == 8
        for number in (-1, 9):
            with pytest.raises(InputError, match="last_row"):
                model.run({**whole, LAST_ROW: np.array([number])})


def test_an_encoder_with_a_mask_and_float_ends(tmp_path):
    dimension = dynamic_encoder("bert_tiny_1x16_masked_erf")
    for value in dimension.proto.graph.input:
        if value.name == "mask":
            sizes = value.type.tensor_type.shape.dim
            sizes[1].dim_value, sizes[3].dim_param = 1, dimension.label
    onnx.save(dimension.proto, tmp_path / "net.onnx")
    archive = library(tmp_path / "net.onnx", tmp_path / "net.ckl", [ValueRange(3, 6)])
    assert any(isinstance(kernel, Image) for kernel in archive.kernels)
    rng = np.random.default_rng(0)
    with (
        caesura.open(TINY, MODEL) as device,
        caesura.by_operation(tmp_path / "net.onnx", device, kernels=tmp_path / "net.ckl") as model,
    ):
        for length in (3, 5, 6):
            x = {
                "tokens": rng.standard_normal((1, length, 128), np.float32),
                "mask": np.where(np.arange(length) < length - 1, 0, -20).astype(np.float32).reshape(1, 1, 1, length),
            }
            check(model, x, length)


def test_where_one_image_is_not_exact_each_length_is_compiled(tmp_path):
    """Padding of a convolution reads what lies behind the end."""
    onnx.save(conv_net((1, 1), (1, 1)), tmp_path / "same.onnx")
    onnx.save(conv_net((2, 0), (2, 0)), tmp_path / "causal.onnx")
    for name, form in (("same", False), ("causal", True)):
        archive = library(tmp_path / f"{name}.onnx", tmp_path / f"{name}.ckl", [ValueRange(4, 7)])
        assert [isinstance(kernel, Image) for kernel in archive.kernels] == [form]
        with (
            caesura.open(TINY, MODEL) as device,
            caesura.by_operation(tmp_path / f"{name}.onnx", device, kernels=tmp_path / f"{name}.ckl") as model,
        ):
            for length in range(4, 8):
                x = np.random.default_rng(length).integers(-128, 128, (1, 4, length)).astype(np.int8)
                check(model, {"x": x}, length)


def test_keys_of_something_else_all_count(tmp_path):
    """Queries of any length attend to nine keys, also where a bucket ends with nine."""
    net = Net()
    query, key, value = (
        net.dq(net.input((1, size, 16), name=name), *X) for name, size in (("q", "L"), ("k", 9), ("v", 9))
    )
    onnx.save(net.model(net.q(attention(net, query, key, value, 2, 8), *X)), tmp_path / "net.onnx")
    archive = library(tmp_path / "net.onnx", tmp_path / "net.ckl", [ValueRange(7, 9)])
    assert not any(isinstance(kernel, Image) for kernel in archive.kernels)
    rng = np.random.default_rng(0)
    with (
        caesura.open(TINY, MODEL) as device,
        caesura.by_operation(tmp_path / "net.onnx", device, kernels=tmp_path / "net.ckl", fallback=True) as model,
    ):
        for length in (7, 8, 9):
            sizes = {"q": length, "k": 9, "v": 9}
            x = {name: rng.integers(-128, 128, (1, size, 16)).astype(np.int8) for name, size in sizes.items()}
            check(model, x, length)
        assert model.served["range"] == 3


def test_what_is_no_attention_has_no_last_row():
    with pytest.raises(CompileError, match="it has no attention, whose keys could be bounded"):
        import_model(DynamicDimension.of(conv_net((1, 1))).fixed(4), last_row=True)
    whole = DynamicDimension.of(attention_net([(2, 8), (2, 8)], WIDTH)).fixed(4)
    with pytest.raises(CompileError, match="is no part of an attention whose keys can be bounded"):
        import_model(whole, last_row=True)
