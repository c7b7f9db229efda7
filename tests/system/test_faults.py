"""Programs that go wrong on the hardware: a fault that names job, PC and address, and a device that runs on."""

import numpy as np
import pytest

import caesura
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.job import Fault
from hw.image.image import Image
from sim import backends
from tests.support.raw_insns import with_field
from tests.system.command import caesura_command

TINY = caesura.PRESETS["tiny"]
FAR = 1 << 20  #: beyond every segment and memory of `tiny`
LIMIT = 200_000  #: cycles


@pytest.fixture(scope="module")
def digits():
    return caesura.compile(MODEL, TINY)


@pytest.fixture(scope="module")
def sample():
    return np.load(SAMPLES)["input"][:1]


@pytest.fixture(scope="module", params=[backends.DEFAULT_BACKEND, backends.MODEL])
def opened(request):
    with caesura.open(TINY, request.param) as device:
        yield device


@pytest.fixture
def device(opened, digits, sample):
    """A device that must still work after the test."""
    yield opened
    model = opened.load(digits)
    np.testing.assert_array_equal(model(sample), reference_logits(MODEL, sample))
    opened.unload(model)


def first(image, op, **fields):
    """PC and instruction of the first ``op`` with these fields."""
    for pc in range(len(image.code) // INSN_BYTES):
        insn = Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])
        if insn.op == op and all(insn[name] == value for name, value in fields.items()):
            return pc, insn
    raise AssertionError(f"no {op.name} in the image")


def patched(image, op, **changes):
    """A copy with other fields in the first ``op``, its PC, and the layer of its job."""
    pc, insn = first(image, op)
    copy = Image.from_bytes(image.to_bytes())
    raw = Insn(op, insn.fields | changes).encode()
    copy.code = image.code[: pc * INSN_BYTES] + raw + image.code[(pc + 1) * INSN_BYTES :]
    entries = [min(job.body_pc, job.body_pc if job.prologue_pc is None else job.prologue_pc) for job in image.meta.jobs]
    job = max(i for i, entry in enumerate(entries) if entry <= pc)
    return copy, pc, image.meta.layers[image.meta.jobs[job].layer].name


def fault(device, model, sample):
    """The record of the fault that ``model`` ends with; its message must name all of it."""
    with pytest.raises(caesura.DeviceFault) as caught:
        model(sample)
    device.unload(model)
    record = caught.value.record
    for text in (record.code.name, record.job, record.unit, f"PC {record.pc}", f"0x{record.address:x}"):
        assert text in str(caught.value)
    return record


@pytest.mark.parametrize(
    "op, changes, address",
    [
        (Op.LD2, {"src": FAR}, FAR),
        (Op.LD2, {"dst": FAR}, FAR),
        (Op.ST2, {"src": FAR}, FAR),
        (Op.ST2, {"dst": FAR}, FAR),
        (Op.LD1, {"dst": FAR}, FAR),
        (Op.ST1, {"dst": FAR}, FAR),
        (Op.ST1, {"src": FAR}, FAR),
        (Op.LD0, {"dst": FAR}, FAR),
        (Op.MAC, {"act": 0xFFFF}, 0xFFFF),
        (Op.MAC, {"acc": 0xFFF}, 0xFFF),
        (Op.VEC, {"d": 0xFFFFF8}, 0xFFFFF8),
    ],
    ids=lambda value: value.name if isinstance(value, Op) else "-".join(value) if isinstance(value, dict) else "",
)
def test_addresses_beyond_segment_or_memory(device, digits, sample, op, changes, address):
    image, pc, layer = patched(digits, op, **changes)
    record = fault(device, device.load(image), sample)
    assert (record.code, record.unit, record.pc, record.address) == (Fault.LIMIT, op.name, pc, address)
    assert f"(layer '{layer}')" in record.job
    assert record.instruction.startswith(op.name)


def test_the_first_byte_behind_a_segment_is_beyond_it(device, digits, sample):
    _, insn = first(digits, Op.LD2)
    size = digits.meta.segment_sizes[insn["src_seg"]]
    image, pc, _ = patched(digits, Op.LD2, src=size - insn["len"] + 1)
    record = fault(device, device.load(image), sample)
    assert (record.code, record.pc, record.address) == (Fault.LIMIT, pc, size)


def test_illegal_instruction_in_memory(device, digits, sample):
    """Loading would have refused it, so it gets there behind the driver's back."""
    model = device.load(digits)
    pc, _ = first(digits, Op.MAC)
    device.bus.write_mem(model.loaded.segments[0][0] + pc * INSN_BYTES, b"\x99")
    record = fault(device, model, sample)
    assert (record.code, record.pc) == (Fault.ILLEGAL, pc)
    assert "(layer 'conv1')" in record.job


@pytest.mark.parametrize(
    ("op", "name", "number"),
    [(Op.LD2, "src_seg", 6), (Op.ST2, "dst_seg", 6), (Op.ST2, "dst_seg", 0), (Op.LD1, "src_seg", 2)],
)
def test_a_copy_across_levels_is_illegal(device, digits, sample, op, name, number):
    """A base in LV2 taken for one in DRAM would be another tenant's. Loading refuses it, and the hardware too."""
    pc, insn = first(digits, op)
    raw = with_field(insn, name, number)
    hostile = Image.from_bytes(digits.to_bytes())
    hostile.code = digits.code[: pc * INSN_BYTES] + raw + digits.code[(pc + 1) * INSN_BYTES :]
    with pytest.raises(caesura.ImageError, match=rf"{op.name}\.{name} must be one of"):
        device.load(hostile)
    model = device.load(digits)
    device.bus.write_mem(model.loaded.segments[0][0] + pc * INSN_BYTES, raw)  # behind the driver's back
    record = fault(device, model, sample)
    assert (record.code, record.pc) == (Fault.ILLEGAL, pc)


def test_segment_outside_the_memory_is_an_axi_error(device, digits, sample):
    model = device.load(digits)
    _, size = model.loaded.segments[1]
    model.loaded.segments[1] = (TINY.dram_bytes, size)
    record = fault(device, model, sample)
    pc, _ = first(digits, Op.LD2, src_seg=1)
    assert (record.code, record.unit, record.pc) == (Fault.BUS, "LD2", pc)


def test_signal_that_never_comes(device, digits, sample):
    image, _, layer = patched(digits, Op.MAC, signal=0)
    record = fault(device, device.load(image), sample)
    assert record.code == Fault.SEMAPHORE_UNDERFLOW and layer in record.job
    assert "wait=" in record.instruction


def test_cycle_limit(device, digits, sample):
    model = device.load(digits)
    driver = device.driver
    driver.begin(model.loaded, LIMIT)
    ids = driver.submit(model.loaded, range(len(digits.meta.jobs)), limit=LIMIT, cycle_limit=1000)
    with pytest.raises(caesura.DeviceFault, match=r"CYCLE_LIMIT fault in job 1 of 'digits' \(layer 'conv2'\).* PC \d+"):
        driver.collect(ids, LIMIT)
    driver.abort(model.loaded)
    device.unload(model)


def test_time_out_says_what_the_engine_was_doing(device, digits):
    model = device.load(digits)
    driver = device.driver
    driver.begin(model.loaded, LIMIT)
    ids = driver.submit(model.loaded, range(len(digits.meta.jobs)), limit=LIMIT)
    message = r"within 2000 cycles.*\n.*engine 0: [A-Z]+, job id \d+, PC \d+.*layer 'conv"
    with pytest.raises(caesura.DeviceTimeout, match=message):
        driver.collect(ids, 2000)
    driver.abort(model.loaded)
    device.unload(model)


def test_the_command_reports_a_fault_in_one_message(digits, tmp_path):
    image, pc, layer = patched(digits, Op.LD2, src=FAR)
    image.save(tmp_path / "far.cimg")
    code, out, err = caesura_command("run", tmp_path / "far.cimg")
    assert (code, out) == (2, "")
    begun, message = err.split("\n", 1)
    assert begun.startswith("digits: 4 layers ")
    assert message.startswith(f"error: engine 0: LIMIT fault in job 0 of 'digits' (layer '{layer}')")
    assert f"LD2 at PC {pc}, address 0x{FAR:x}" in err and "Traceback" not in err
