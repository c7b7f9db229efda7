"""Kernels of operations are linked to one program: what is between them stays on the device, exactly, and whatever
happens meanwhile."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

import caesura
from caesura.lengths import OperationDemands, make_bucket, source_of
from compiler import Options, import_model, reference
from hw.contract.params import preset
from hw.image import KernelArchive, ValueRange
from sim.backends import DEFAULT_BACKEND, MODEL
from sw.driver import DriverError, LoadedModel, OutOfMemory
from tests.support.length_nets import conv_net
from tests.support.operation_nets import attention_net

HEADS, WIDTH = [(2, 8), (1, 20), (2, 8)], 12
PRESETS = {"one": preset("tiny"), "two": replace(preset("tiny"), name="two", engines=2)}
BUCKETS = (ValueRange(2, 9), ValueRange(10, 21))


@pytest.fixture(scope="module", params=PRESETS)
def params(request):
    return PRESETS[request.param]


@pytest.fixture(scope="module")
def net(params, tmp_path_factory):
    """A model, and libraries of a bucket kernel, or a range kernel, for each operation and range of lengths."""
    folder = tmp_path_factory.mktemp("net")
    onnx.save(attention_net(HEADS, WIDTH), folder / "net.onnx")
    options = Options(cancel_interval=500)  # so short that even these are suspended
    source = source_of(
        folder / "net.onnx", params, dimension=None, engines=params.engines, options=options, cache=False
    )
    different = OperationDemands(source).different()
    buckets = [make_bucket(each, made, demand, bucket) for demand, made, each in different for bucket in BUCKETS]
    ranges = [made.make_range(demand, range(4, 25, 4)) for demand, made, _ in different]
    for name, kernels in (("buckets", buckets), ("ranges", ranges)):
        (folder / f"{name}.ckl").write_bytes(KernelArchive(tuple(each.content for each in kernels)).to_bytes())
    return folder


def tokens(length):
    return np.random.default_rng(length).integers(-128, 128, (1, length, WIDTH)).astype(np.int8)


_known: dict[int, np.ndarray] = {}


def wanted_of(model, length):
    if length not in _known:
        whole = import_model(model.dimension.fixed(length))
        (_known[length],) = reference.run(whole, {"x": tokens(length)}).values()
    return _known[length]


def check(model, length, found=None):
    (got,) = (model.run(tokens(length)) if found is None else found).values()
    np.testing.assert_array_equal(got, wanted_of(model, length))


def programs(model):
    return model.kernels.programs


@pytest.mark.parametrize("library", ["buckets", "ranges"])
def test_the_host_touches_nothing_between_the_operations(net, params, library, monkeypatch):
    touched = []
    for name in ("write_tensor", "read_tensor"):
        before = getattr(LoadedModel, name)
        monkeypatch.setattr(
            LoadedModel, name,
            lambda self, tensor, *value, before=before: (touched.append(tensor), before(self, tensor, *value))[1],
        )  # fmt: skip
    with caesura.open(params, MODEL) as device:
        with caesura.by_operation(net / "net.onnx", device, kernels=net / f"{library}.ckl") as model:
            for length in (8, 20, 4, 8):
                touched.clear()
                check(model, length)
                (output,) = model.dimension.proto.graph.output
                assert touched == ["x", *(["last_row"] if library == "buckets" else []), output.name]
                assert [each.through_host for each in model.last] == [""] * 7
                assert all(each.cycles > 0 for each in model.last)


@pytest.mark.parametrize("library", ["buckets", "ranges"])
def test_a_program_on_the_rtl(net, params, library):
    with caesura.open(params, DEFAULT_BACKEND) as device:
        with caesura.by_operation(net / "net.onnx", device, kernels=net / f"{library}.ckl") as model:
            for length in (20, 8, 20):
                check(model, length)
            assert [each.through_host for each in model.last] == [""] * 7


def test_suspended_anywhere_it_goes_on_exactly(net, params, tmp_path):
    """An urgent request comes at another moment of each inference: within every kernel, and between them."""
    onnx.save(conv_net((1, 1), dimension=9), tmp_path / "urgent.onnx")
    x, places, preempted = np.ones((1, 4, 9), np.int8), set(), 0
    with caesura.open(params, MODEL) as device:
        urgent = device.load(caesura.compile(tmp_path / "urgent.onnx", params))
        alone = urgent(x)
        with caesura.by_operation(net / "net.onnx", device, kernels=net / "ranges.ckl") as model:
            check(model, 20)
            took = sum(each.cycles for each in model.last)
            (program,) = programs(model)
            for at in range(0, took, took // 40):
                begin = device.bus.cycle
                with caesura.Runtime(device, "fcfs", preemptive=True, rule=lambda _: caesura.Mechanism.DUMP) as runtime:
                    mine = runtime.submit(program, {"x": tokens(20)}, arrival=begin)
                    other = runtime.submit(urgent, x, priority=1, arrival=begin + at)
                    check(model, 20, mine.result())
                    assert np.array_equal(*other.result().values(), alone)
                preempted += mine.preempted
                if mine.preempted:
                    resumed = [program.loaded.place_of(job.job) for job in mine.results if job.resumed]
                    places.update(resumed)
    assert preempted > 30 and places >= {1, 3, 5}


def test_no_engine_begins_a_kernel_before_all_have_ended_the_one_before(net, params):
    """By the tables: what goes wrong otherwise depends on which engine is late. Neither bodies nor prologues begin."""
    with caesura.open(params, MODEL) as device:
        with caesura.by_operation(net / "net.onnx", device, kernels=net / "ranges.ckl") as model:
            check(model, 20)
            (program,) = programs(model)
    loaded, meta = program.loaded, program.image.meta
    queues = {e: [i for i, job in enumerate(meta.jobs) if job.engine == e] for e in range(params.engines)}
    turns = 0
    for number, job in enumerate(meta.jobs):
        if loaded.place_of(number) is None and job.waits:
            ((event, count),) = job.waits
            before = [i for i in range(number) if meta.jobs[i].signal == event]
            assert len(before) == count == params.engines * (1 + turns // params.engines)
            for queue in queues.values():  # the signal of each comes behind all that it has to end
                told = [i for i in before if i in queue]
                assert len(told) == 1 + turns // params.engines
            turns += 1
    assert turns == (0 if params.engines == 1 else 6 * params.engines)
    for queue in queues.values():
        for at, number in enumerate(queue):
            place = loaded.place_of(number)
            if place and meta.jobs[number].prologue_pc is not None:
                held = queue[at - meta.jobs[number].window_after]
                assert meta.jobs[number].window_after and loaded.place_of(held) in (place, place - 1, None)
                assert all(loaded.place_of(i) in (place, None) for i in queue[queue.index(held) + 1 : at])


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_lengths_leave_nothing_behind(net, params, count):
    """Also where few kernels have room at a time."""
    rng = np.random.default_rng(0)
    with caesura.open(params, MODEL) as device:
        driver = device.driver
        device.unload(
            device.load(caesura.compile(net / "net.onnx", params, sizes={"L": 4}))
        )  # takes what the driver takes once
        before = driver.dram.free_bytes, driver.lv2.free_bytes, len(driver.models)
        with (
            caesura.by_operation(net / "net.onnx", device, kernels=net / "buckets.ckl") as buckets,
            caesura.by_operation(net / "net.onnx", device, kernels=net / "ranges.ckl", most_loaded=3) as ranges,
        ):
            for number in range(count):
                if number % 10:
                    check(buckets, int(rng.integers(2, 22)))
                else:
                    check(ranges, 4 * int(rng.integers(1, 7)))
            assert buckets.served == {"range": count * 9 // 10 * 7} and ranges.served == {"range": count // 10 * 7}
            assert len(programs(buckets)) == 2 and len(programs(ranges)) <= 3
        assert before == (driver.dram.free_bytes, driver.lv2.free_bytes, len(driver.models))
        driver.events.release(driver.events.lease(params.events - 1, "all but one"))  # the supervisor may have one


def test_the_cpu_breaks_a_program_and_that_is_told(net, params):
    with caesura.open(params, MODEL) as device:
        with caesura.by_operation(net / "net.onnx", device, kernels=net / "ranges.ckl", fallback=True) as model:
            model.kernel_library.remove(model.match(8)["attention.3"])
            check(model, 8)
            assert [(each.how, each.through_host) for each in model.last] == [
                *[("range", "")] * 3,
                ("cpu", "it is computed by the CPU"),
                ("range", "the operation before is computed by the CPU"),
                *[("range", "")] * 2,
            ]


def test_without_room_for_all_kernels_each_runs_alone(net, params, monkeypatch):
    def refuse(*_):
        raise OutOfMemory("DRAM: no room")

    with caesura.open(params, MODEL) as device:
        with caesura.by_operation(net / "net.onnx", device, kernels=net / "ranges.ckl") as model:
            monkeypatch.setattr(device.driver, "link", refuse)
            check(model, 8)
            told = [each.through_host for each in model.last]
            assert told[0] == "" and all("not all kernels have room" in each for each in told[1:])


def test_kernels_of_a_program_stay_loaded(net, params):
    with caesura.open(params, MODEL) as device:
        with caesura.by_operation(net / "net.onnx", device, kernels=net / "ranges.ckl") as model:
            check(model, 8)
            (program,) = programs(model)
            with pytest.raises(DriverError, match="is part of program 'net, 7 kernels': unload that first"):
                device.driver.unload(program.loaded.kernels[0])
