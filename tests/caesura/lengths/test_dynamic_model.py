"""A model with a dynamic dimension is one model: every length equals onnxruntime, and says how it was served."""

import threading

import numpy as np
import onnx
import pytest

import caesura
from caesura.lengths import kernel_source
from compiler import golden
from hw.contract.params import preset
from hw.image.kernel_attributes import KernelAttributes
from sw.kernels import LibraryKernel
from tests.support.length_nets import X, conv_net, length_net

CAUSAL, SAME = ((2, 0), (2, 0)), ((1, 1), (1, 1))


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache folder of the test's own, and the models' folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def device():
    with caesura.open("tiny", "model") as device:
        yield device


def saved(folder, model, name="net"):
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def inputs(length, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, (1, 4, length)).astype(np.int8)


def check(model, length):
    """Call it, compare with onnxruntime; returns how it was served."""
    x = inputs(length, length)
    (wanted,) = golden.golden_outputs(model.dimension.fixed(length), {"x": x}).values()
    np.testing.assert_array_equal(model(x), wanted)
    assert model.last.length == length
    return model.last.how, model.last.kernel_length


def test_padded_where_that_is_exact(folder, device):
    with caesura.dynamic(saved(folder, conv_net(*CAUSAL)), device, range(1, 97), ladder=(16, 32, 64)) as model:
        served = [check(model, length) for length in (5, 16, 17, 32, 40, 65, 65, 96)]
        assert served == [
            ("ladder", 16), ("exact", 16), ("ladder", 32), ("exact", 32), ("ladder", 64), ("compiled", 65),
            ("exact", 65), ("compiled", 96),
        ]  # fmt: skip
        assert model.served == {"ladder": 3, "exact": 3, "compiled": 2}
        assert model.padding_problem(17, 32) is None


def test_compiled_where_padding_is_not_exact(folder, device):
    with caesura.dynamic(saved(folder, conv_net(*SAME)), device, range(1, 97), ladder=(16, 32, 64)) as model:
        assert [check(model, length) for length in (5, 16, 17, 5)] == [
            ("compiled", 5), ("compiled", 16), ("compiled", 17), ("exact", 5),
        ]  # fmt: skip
        assert "beyond the end" in model.padding_problem(5, 16)


def test_weights_stay_on_chip_from_one_length_to_the_next(folder):
    with caesura.open("base", "model") as device:
        with caesura.dynamic(saved(folder, conv_net(*SAME)), device, range(1, 97), ladder=()) as model:
            loaded = []
            for length in (24, 24, 25):
                check(model, length)
                _, stats = model.run(inputs(length))
                loaded.append(sum(job.prologue_start > 0 for job in stats.jobs))
            jobs = model.loaded_for(inputs(24)).image.meta.jobs
            assert sum(job.prologue_pc is not None for job in jobs) > 0 and loaded == [0, 0, 0]


def test_no_ladder_no_padding(folder, device):
    with caesura.dynamic(saved(folder, conv_net(*CAUSAL)), device, range(1, 97), ladder=()) as model:
        assert check(model, 5) == ("compiled", 5)


def test_other_operators_over_the_length(folder, device):
    def build(net, x):
        return net.node("GlobalAveragePool", [x])

    with caesura.dynamic(saved(folder, length_net(build)), device, range(2, 40), ladder=(16,)) as model:
        assert [check(model, length) for length in (9, 12, 9)] == [("compiled", 9), ("compiled", 12), ("exact", 9)]


def test_a_float_input_is_padded_too(folder, device):
    net = length_net(lambda net, x: net.conv(x, X[0], (4, 4, 2), pads=[1, 0]))
    net.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    scale, zero = net.graph.node[0].input[1:3]
    net.graph.node[0].input[0] = "x8"
    net.graph.node.insert(0, onnx.helper.make_node("QuantizeLinear", ["x", scale, zero], ["x8"], name="first"))
    with caesura.dynamic(saved(folder, net), device, range(2, 40), ladder=(16,)) as model:
        x = np.random.default_rng(1).normal(size=(1, 4, 9)).astype(np.float32)
        (wanted,) = golden.golden_outputs(model.dimension.fixed(9), {"x": x}).values()
        np.testing.assert_array_equal(model(x), wanted)
        assert model.last.how == "ladder"


def test_in_the_background_for_the_next_call(folder, device):
    path = saved(folder, conv_net(*CAUSAL))
    with caesura.dynamic(path, device, range(1, 33), ladder=(32,), background=True) as model:
        assert check(model, 9) == ("ladder", 32)
        model.prepare(9)  # waits for the one that is being made
        assert check(model, 9) == ("exact", 9)


def test_files_serve_the_next_process(folder, device):
    path = saved(folder, conv_net(*SAME))
    with caesura.dynamic(path, device, range(1, 33)) as model:
        assert check(model, 9) == ("compiled", 9)
    with caesura.dynamic(path, device, range(1, 33)) as model:
        assert [check(model, 9), check(model, 9)] == [("file", 9), ("exact", 9)]
    (file,) = (folder / "cache" / "caesura" / "kernels").iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    with caesura.dynamic(path, device, range(1, 33)) as model:
        assert check(model, 9) == ("compiled", 9)
    onnx.save(conv_net(*SAME, seed=1), path)  # the same name, other weights
    with caesura.dynamic(path, device, range(1, 33)) as model:
        assert check(model, 9) == ("compiled", 9)
    with caesura.dynamic(path, device, range(1, 33), cache=False) as model:
        assert check(model, 9) == ("compiled", 9)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 4, 33), r"model 'net': length 33 of dimension 'L' \(range 4 to 32; nearest kernels: 20, 10\) is not"),
        ((1, 4, 3), r"length 3 of dimension 'L' \(range 4 to 32; nearest kernels: 10, 20\)"),
        ((1, 4, 0), "length 0"),
        ((1, 4), r"input 'x': shape \[1, 4\] has no dimension 2"),
        ((1, 5, 10), r"input 'x': shape \[1, 5, 10\], expected \[1, 4, 10\]"),
    ],
)
def test_errors_name_length_range_and_kernels(folder, device, shape, message):
    with caesura.dynamic(saved(folder, conv_net(*SAME)), device, range(4, 33)) as model:
        model.prepare(10, 20)
        with pytest.raises(caesura.InputError, match=message):
            model(np.zeros(shape, np.int8))
        assert check(model, 10) == ("exact", 10)


def test_inputs_that_do_not_fit_together(folder, device):
    with caesura.dynamic(saved(folder, conv_net(*SAME)), device, range(4, 33, 4)) as model:
        with pytest.raises(caesura.InputError, match="input 'x' is missing; model 'net' takes 'x'"):
            model({"y": inputs(8)})
        with pytest.raises(caesura.InputError, match=r"length 9 .* in steps of 4; nearest kernels: none so far"):
            model(inputs(9))
        with pytest.raises(caesura.InputError, match=r"length True .*is not in the range"):
            model.prepare(True)


@pytest.mark.parametrize("lengths", [range(0, 5), range(0), range(1, 2**40), (1, 2), 5])
def test_lengths_that_are_none(folder, device, lengths):
    with pytest.raises(caesura.UsageError, match="lengths must be a range"):
        caesura.dynamic(saved(folder, conv_net(*SAME)), device, lengths)


def test_a_length_that_cannot_be_compiled(folder, device, monkeypatch):
    """It is that request's error; others are served, and it is tried again."""
    real, broken = kernel_source.compile_model, [True]

    def compile_model(*arguments, **options):
        if broken[0]:
            raise caesura.CompileError("no room")
        return real(*arguments, **options)

    with caesura.dynamic(saved(folder, conv_net(*SAME)), device, range(1, 33)) as model:
        broken[0] = False
        check(model, 8)
        monkeypatch.setattr(kernel_source, "compile_model", compile_model)
        broken[0] = True
        message = r"length 9 of dimension 'L' \(range 1 to 32; nearest kernels: 8\), and none can be compiled.*no room"
        with pytest.raises(caesura.CompileError, match=message):
            model(inputs(9))
        assert check(model, 8) == ("exact", 8)
        broken[0] = False
        assert check(model, 9) == ("compiled", 9)


def test_a_window_that_is_larger_than_the_input(folder, device):
    with caesura.dynamic(saved(folder, conv_net((0, 0))), device, range(1, 33), ladder=(16,)) as model:
        with pytest.raises(caesura.CompileError, match="length 2 of dimension 'L'"):
            model(inputs(2))
        assert check(model, 3) == ("ladder", 16)


def test_kernels_make_room_for_others_and_share_their_weights(folder, device):
    free = device.driver.dram.free_bytes
    with caesura.dynamic(saved(folder, conv_net(*SAME)), device, range(1, 33), most_loaded=2) as model:
        for length in (8, 9, 10, 8, 8, 10):
            check(model, length)
            assert len(model.kernels) <= 2
        assert model.served == {"compiled": 3, "exact": 3}
        first, second = model.at(8).loaded, model.at(10).loaded
        assert first.image.weights is second.image.weights and first.segments[1] == second.segments[1]
        assert first.segments[0] != second.segments[0]
    assert device.driver.dram.free_bytes == free


def test_a_full_memory_is_made_room_in(folder, device):
    dram = device.driver.dram
    with caesura.dynamic(saved(folder, conv_net(*SAME)), device, range(1, 33)) as model:
        check(model, 16)
        dram.allocate(dram.largest_block)
        assert check(model, 8) == ("compiled", 8)
        assert len(model.kernels) == 1


def test_a_run_time_takes_it_as_a_model(folder, device):
    with caesura.dynamic(saved(folder, conv_net(*CAUSAL)), device, range(1, 33)) as model:
        runtime = caesura.Runtime(device, preemptive=True)
        requests = [runtime.submit(model, inputs(length), priority=length % 3) for length in (8, 20, 8, 9)]
        runtime.run_until_done()
        for request, length in zip(requests, (8, 20, 8, 9), strict=True):
            (wanted,) = golden.golden_outputs(model.dimension.fixed(length), {"x": inputs(length)}).values()
            (found,) = request.result().values()
            np.testing.assert_array_equal(found, wanted)
        assert requests[0].model is requests[2].model is not requests[1].model
        with pytest.raises(caesura.InputError, match="length 33"):
            runtime.submit(model, inputs(33))


def _two_engines(events):
    """A machine on which each kernel takes a hardware event."""
    return caesura.open(preset("tiny").replace(engines=2, events=events), "model")


@pytest.mark.slow
def test_requests_of_many_lengths_leave_few_loaded(folder):
    """More lengths than hardware events; kernels go when their requests have ended, and come back."""
    with (
        _two_engines(8) as device,
        caesura.dynamic(saved(folder, conv_net(*CAUSAL)), device, range(1, 65), most_loaded=3) as model,
    ):
        runtime = caesura.Runtime(device)
        for first in (1, 5, 9, 1):
            requests = [runtime.submit(model, inputs(length)) for length in range(first, first + 4)]
            assert len(model.kernels) <= 4 + 3
            runtime.run_until_done()
            for length, request in enumerate(requests, first):
                (wanted,) = golden.golden_outputs(model.dimension.fixed(length), {"x": inputs(length)}).values()
                (found,) = request.result().values()
                np.testing.assert_array_equal(found, wanted)
        check(model, 20)
        assert len(model.kernels) <= 3
        assert len(runtime._data) <= 8


def test_kernels_in_use_stay_and_what_finds_no_event_says_so(folder):
    with (
        _two_engines(4) as device,
        caesura.dynamic(saved(folder, conv_net(*CAUSAL)), device, range(1, 33), most_loaded=2) as model,
    ):
        runtime = caesura.Runtime(device)
        model.at(30)
        requests = [runtime.submit(model, inputs(length)) for length in (8, 9)]
        with pytest.raises(caesura.DriverError, match=r"hardware events.*3 kernels are loaded, 1 of them kept"):
            runtime.submit(model, inputs(10))
        runtime.run_until_done()
        assert all(request.error is None for request in requests)
        for length in (10, 11, 12):
            runtime.submit(model, inputs(length)).result()
        assert model.at(30).loaded.loaded
        model.release(30)
        for length in (13, 14, 15):
            check(model, length)
        assert len(model.kernels) == 2


def test_kernels_that_others_add_are_used(folder, device):
    """While a call is under way, another thread adds a kernel for another length."""
    path = saved(folder, conv_net(*CAUSAL))
    with caesura.dynamic(path, device, range(1, 65), ladder=(64,)) as model:
        demand = model.demand
        image = caesura.compile(saved(folder, model.dimension.fixed(20), "fixed"), "tiny", cache=False)
        attributes = KernelAttributes.of(demand.class_1, demand.parameter, 20)
        assert check(model, 20) == ("ladder", 64)
        thread = threading.Thread(target=model.kernel_library.add, args=(LibraryKernel("mine", attributes, image),))
        thread.start()
        check(model, 21)
        thread.join()
        assert check(model, 20) == ("exact", 20)
