"""The C driver runs models from their flat form as the Python driver runs images, and refuses what is wrong."""

import numpy as np
import pytest

import caesura
from compiler.pipeline import build as build_image
from compiler.plan.options import Options
from examples.c_driver.binding import CDevice, CDriverError
from examples.c_driver.build import build
from examples.c_driver.demo import main
from hw.contract.isa import INSN_BYTES, Op
from hw.contract.job import JOB
from hw.contract.params import preset
from hw.image.flat_form import HEADER, PORT, RELOCATION, flat
from hw.image.image import Image, ImageError, Relocation
from sw.driver.memory.placement import relocate
from tests.support.graphs import GraphBuilder, random_inputs, residual_block
from tests.support.images import negating_image

TINY, BASE = preset("tiny"), preset("base")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("c_driver"))


def compiled(graph, params, **options) -> Image:
    image, _ = build_image(graph, params, Options(**options))
    return Image.from_bytes(image.to_bytes())


def same_results(library, image: Image, given: dict[str, np.ndarray], times: int = 1):
    with caesura.open(image.params, backend="model") as device:
        expected = device.load(image)(given)
    expected = expected if isinstance(expected, dict) else {image.meta.outputs[0].name: expected}
    with caesura.open(image.params, backend="model") as device:
        model = CDevice(library, device.bus).load(flat(image))
        for _ in range(times):
            found = model(given)
            assert found.keys() == expected.keys()
            assert all(np.array_equal(found[name], expected[name]) for name in found)


def test_demo(capsys):
    assert main(["--backend", "model", "--samples", "2"]) == 0
    assert "2 of 2 digits right, 2 equal" in capsys.readouterr().out


def test_several_engines_and_events(library):
    graph = residual_block(1).graph
    image = compiled(graph, BASE, engines=2)
    assert image.meta.events and {job.engine for job in image.meta.jobs} == {0, 1}
    same_results(library, image, random_inputs(graph, 3), times=2)


def test_more_jobs_than_a_ring_holds(library):
    make = GraphBuilder(2)
    x = make.input((1, 4, 4, 8))
    for _ in range(70):
        x = make.conv(x, 8, (1, 1))
    make.output(x)
    image = compiled(make.graph, TINY, regions=False)
    assert len(image.meta.jobs) > 64
    same_results(library, image, random_inputs(make.graph, 4))


def test_several_ports(library):
    make = GraphBuilder(5)
    a, b = make.input((1, 3, 5, 16)), make.input((1, 3, 5, 16), "uint8")
    make.output(make.conv(a, 8, (1, 1)))
    make.output(make.eltwise("add", a, b))
    same_results(library, compiled(make.graph, TINY), random_inputs(make.graph, 6))


def test_a_fault_is_reported_and_the_next_inference_is_exact(library):
    graph = residual_block(1).graph
    image, given = compiled(graph, TINY), random_inputs(graph, 3)
    file = flat(image)
    header = HEADER.unpack(file[: HEADER.size])
    body = image.meta.jobs[1].body_pc * INSN_BYTES
    broken = bytearray(file)
    broken[header["code"] + body] = 0xEE  # no opcode
    with caesura.open(TINY, backend="model") as device:
        driver = CDevice(library, device.bus)
        with pytest.raises(CDriverError, match=r"a job faulted: .*'job': 1, 'code': 1"):
            driver.load(bytes(broken))(given)
        (found,) = driver.load(file)(given).values()
    with caesura.open(TINY, backend="model") as device:
        assert np.array_equal(found, device.load(image)(given))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"magic": 1}, "damaged: magic"), ({"version": 9}, "damaged: version"), ({"bytes": 64}, "damaged: bytes: "),
        ({"code": 1 << 31}, "code leaves the file"), ({"jobs": 1 << 31}, "job_table leaves the file"),
        ({"port_table": (1 << 32) - 8}, "port_table leaves the file"), ({"params": 5}, "other hardware"),
        ({"engines": 3}, "other hardware"), ({"engines": 17}, "engines: "), ({"events": 65}, "events: "),
        ({"size4": 1 << 31}, "no memory"), ({"size0": 64}, "code_bytes: "), ({"lv2_bytes": 1}, "part of LV2"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(library, change, message):
    make = GraphBuilder(5)
    make.output(make.conv(make.input((1, 3, 5, 16)), 8, (1, 1)))
    file = flat(compiled(make.graph, TINY))
    header = HEADER.unpack(file[: HEADER.size]) | change
    with caesura.open(TINY, backend="model") as device, pytest.raises(CDriverError, match=message):
        CDevice(library, device.bus).load(HEADER.pack(**header) + file[HEADER.size :])


@pytest.mark.parametrize(
    "change",
    [
        {"extent0": 0}, {"extent1": 1 << 31}, {"elements": 1 << 30}, {"stride1": 1 << 30}, {"axes": 9}, {"stored": 5},
        {"stored": 3}, {"given": 0}, {"segment": 6}, {"segment": 1}, {"offset": 1 << 31}, {"bytes": 4},
        {"name": 1 << 31}, {"zero_point": 1 << 31}, {"zero_point": 128}, {"scale": 0}, {"scale": 0x7F80_0000},
        {"quantise": 2}, {"quantise": 0}, {"quantise": 0, "given": 3},
    ],
)  # fmt: skip
def test_damaged_ports_are_refused(library, change):
    make = GraphBuilder(5)
    make.output(make.conv(make.input((1, 3, 5, 16)), 8, (1, 1)))
    image = compiled(make.graph, TINY)
    for port in image.meta.inputs:
        port.quantise, port.dtype = True, "float32"
    file = flat(image)
    at = HEADER.unpack(file[: HEADER.size])["port_table"]
    port = PORT.unpack(file[at : at + PORT.size]) | change
    with caesura.open(TINY, backend="model") as device:
        driver = CDevice(library, device.bus)
        driver.load(file)
        with pytest.raises(CDriverError, match="not a flat image"):
            driver.load(file[:at] + PORT.pack(**port) + file[at + PORT.size :])


def test_a_job_cannot_reach_the_memory_of_another_model(library):
    """Its limits are those of its own segments, whatever the file says of one job."""
    make = GraphBuilder(5)
    make.output(make.conv(make.input((1, 3, 5, 16)), 8, (1, 1)))
    image = compiled(make.graph, TINY)
    file = flat(image)
    at = HEADER.unpack(file[: HEADER.size])["job_table"]
    with caesura.open(TINY, backend="model") as device:
        driver = CDevice(library, device.bus)
        for segment, size in enumerate(image.meta.segment_sizes):
            job = JOB.unpack(file[at : at + JOB.size]) | {f"limit{segment}": size + 1}
            with pytest.raises(CDriverError, match="damaged: job: a limit is beyond the size of its segment"):
                driver.load(file[:at] + JOB.pack(**job) + file[at + JOB.size :])
        assert driver.load(file)(random_inputs(make.graph, 1))


def test_a_port_of_two_types_has_no_flat_form():
    make = GraphBuilder(5)
    make.output(make.conv(make.input((1, 3, 5, 16)), 8, (1, 1)))
    image = compiled(make.graph, TINY)
    image.meta.inputs[0].dtype = "float32"
    with pytest.raises(ImageError, match=r"no flat form: .* is float32, not int8"):
        flat(image)


@pytest.mark.parametrize("change", [{"low": 32}, {"width": 0}, {"width": 64}, {"segment": 8}, {"byte": (1 << 32) - 4}])
def test_damaged_relocations_are_refused(library, change):
    graph = residual_block(1).graph
    image = compiled(graph, TINY)
    image.meta.relocations = [Relocation(image.meta.jobs[0].body_pc, "src", "segment6")]
    file = flat(image)
    at = HEADER.unpack(file[: HEADER.size])["relocation_table"]
    entry = RELOCATION.unpack(file[at : at + RELOCATION.size]) | change
    with caesura.open(TINY, backend="model") as device:
        driver = CDevice(library, device.bus)
        driver.load(file)
        with pytest.raises(CDriverError, match="not a flat image"):
            driver.load(file[:at] + RELOCATION.pack(**entry) + file[at + RELOCATION.size :])


def test_a_load_that_fails_takes_nothing(library):
    make = GraphBuilder(5)
    make.output(make.conv(make.input((1, 3, 5, 16)), 8, (1, 1)))
    file = flat(compiled(make.graph, TINY))
    header = HEADER.unpack(file[: HEADER.size])
    large = HEADER.pack(**header | {"size4": TINY.dram_bytes // 3 * 2}) + file[HEADER.size :]
    larger = HEADER.pack(**header | {"size4": TINY.dram_bytes // 3 * 2, "size5": TINY.dram_bytes // 2})
    with caesura.open(TINY, backend="model") as device:
        driver = CDevice(library, device.bus)
        with pytest.raises(CDriverError, match="no memory"):
            driver.load(larger + file[HEADER.size :])
        driver.load(large)


def test_numbers_that_are_none_become_the_zero_point(library):
    graph = GraphBuilder(5)
    graph.output(graph.conv(graph.input((1, 3, 5, 16)), 8, (1, 1)))
    image = compiled(graph.graph, TINY)
    (port,) = image.meta.inputs
    port.quantise, port.dtype = True, "float32"
    zero = np.zeros(port.shape, np.float32)
    with caesura.open(TINY, backend="model") as device:
        model = CDevice(library, device.bus).load(flat(image))
        (expected,), (found,) = (model({port.name: x}).values() for x in (zero, np.full_like(zero, np.nan)))
    assert np.array_equal(expected, found)


def test_truncated_files_are_refused(library):
    make = GraphBuilder(5)
    make.output(make.conv(make.input((1, 3, 5, 16)), 8, (1, 1)))
    file = flat(compiled(make.graph, TINY))
    with caesura.open(TINY, backend="model") as device:
        driver = CDevice(library, device.bus)
        for size in (0, 3, HEADER.size - 1, HEADER.size, len(file) - 1):
            with pytest.raises(CDriverError, match="not a flat image"):
                driver.load(file[:size])


def test_steps_on_the_cpu_have_no_flat_form():
    with pytest.raises(ImageError, match="no flat form: it has steps that run on the CPU"):
        flat(negating_image(TINY))


def test_relocations(library):
    graph = residual_block(1).graph
    image = compiled(graph, TINY)
    copies = [pc for pc in range(len(image.code) // INSN_BYTES) if image.code[pc * INSN_BYTES] == Op.LD1]
    image.meta.relocations = [Relocation(copies[0], "src", "segment6"), Relocation(copies[1], "dst", "segment3")]
    with caesura.open(TINY, backend="model") as device:
        model = CDevice(library, device.bus).load(flat(image))
        bases = list(model._model.base)
        wanted = relocate(image, [(base, 0) for base in bases])
        assert bases[3] and device.bus.read_mem(bases[0], len(wanted)) == wanted != image.code
