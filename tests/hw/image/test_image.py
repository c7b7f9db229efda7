import dataclasses
import hashlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hw.contract.isa import Insn, Op
from hw.contract.params import preset
from hw.image.image import CancelPoint, Image, ImageError, JobInfo, LiveRange, Relocation, StepInfo
from tests.support.images import COPY_BODY, copy_image

TINY, BASE = preset("tiny"), preset("base")
HEADER = 64


def full_image():
    """An image with something in every table."""
    image = copy_image(TINY, COPY_BODY.replace("ST2", "CANCEL\nST2"))
    image.weights = bytes(range(100))
    image.meta.segment_sizes[1] = 100
    image.host_models = [b"first", b"second one"]
    image.meta.cancel_points = [
        CancelPoint(0, 0, 1, 10, [LiveRange("lv1", 0, 0, 16, dirty=True)], reload=[0], semaphores=[(0, 1)])
    ]
    image.meta.jobs[0].live = [LiveRange("lv2", 6, 0, 32, dirty=False, source_segment=2, source_offset=32)]
    image.meta.relocations = [Relocation(pc=0, field="src", symbol="segment2")]
    image.meta.kernel_attributes = {"class_1": {"head_size": 80}, "class_2": {"sequence": "128..1024"}}
    image.to_bytes()
    return image


RAW = full_image().to_bytes()
META_SIZE = struct.unpack_from("<I", RAW, 8)[0]


def repack(change):
    """RAW with ``change`` applied to the metadata, and a checksum that is right."""
    meta = json.loads(RAW[HEADER : HEADER + META_SIZE])
    change(meta)
    text = json.dumps(meta).encode()
    body = text + RAW[HEADER + META_SIZE :]
    return RAW[:8] + struct.pack("<I", len(text)) + RAW[12:32] + hashlib.sha256(body).digest() + body


def test_round_trip():
    again = Image.from_bytes(RAW)
    original = full_image()
    assert dataclasses.asdict(again.meta) == dataclasses.asdict(original.meta)
    assert (again.code, again.weights, again.host_models) == (
        original.code,
        original.weights,
        original.host_models,
    )
    assert again.to_bytes() == RAW


@given(st.integers(0, len(RAW) - 1), st.integers(0, 7))
@settings(max_examples=300, deadline=None)
def test_every_flipped_bit_is_noticed(place, bit):
    raw = bytearray(RAW)
    raw[place] ^= 1 << bit
    with pytest.raises(ImageError, match="image: "):
        Image.from_bytes(bytes(raw))


@pytest.mark.parametrize("place", [*range(HEADER), HEADER + META_SIZE - 1, HEADER + META_SIZE, len(RAW) - 1])
def test_flips_in_the_header_and_at_section_borders(place):
    raw = bytearray(RAW)
    raw[place] ^= 0x10
    with pytest.raises(ImageError):
        Image.from_bytes(bytes(raw))


@given(st.integers(0, len(RAW) - 1))
@settings(deadline=None)
def test_every_truncation_is_noticed(size):
    with pytest.raises(ImageError):
        Image.from_bytes(RAW[:size])


def test_appended_bytes_are_noticed():
    with pytest.raises(ImageError, match="truncated"):
        Image.from_bytes(RAW + b"\0")


def test_other_versions_are_refused():
    raw = RAW[:4] + struct.pack("<H", 9) + RAW[6:]
    with pytest.raises(ImageError, match="format version 9"):
        Image.from_bytes(raw)


def test_files(tmp_path):
    path = tmp_path / "m.cimg"
    full_image().save(path)
    assert Image.load(path).to_bytes() == RAW
    with pytest.raises(ImageError, match=r"absent\.cimg: cannot be read: No such file"):
        Image.load(tmp_path / "absent.cimg")
    path.write_bytes(RAW[:-1])
    with pytest.raises(ImageError, match=r"m\.cimg: .*truncated"):
        Image.load(path)


def test_other_parameters_are_refused():
    image = full_image()
    image.check_params(TINY.replace(name="renamed"))
    with pytest.raises(ImageError, match=r"built for preset 'tiny' .* not for 'base'"):
        image.check_params(BASE)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda m: m.pop("jobs"), "metadata field jobs"),
        (lambda m: m.update(extra=1), "metadata field extra"),
        (lambda m: m["tensors"][0].update(dtype="int4"), r"metadata field tensors\.0\.dtype"),
        (lambda m: m["tensors"][0].update(scale="x"), r"metadata field tensors\.0\.scale"),
        (lambda m: m["jobs"][0].update(waits=[[0]]), r"metadata field jobs\.0\.waits"),
        (lambda m: m["params"].update(rows=5), "params: .*rows must be"),
        (lambda m: m["params"].pop("rows"), "params: parameter fields do not match"),
        (lambda m: m["params"].update(rows="8"), "params: .*rows must be a positive integer"),
        (lambda m: m["segment_sizes"].pop(), "segment_sizes must be 8 sizes"),
        (lambda m: m["segment_sizes"].__setitem__(4, -1), "segment_sizes must be 8 sizes"),
        (lambda m: m["segment_sizes"].__setitem__(0, 1), "code or weights do not fit"),
        (lambda m: m["segment_sizes"].__setitem__(7, 1 << 20), "exceed LV2"),
        (lambda m: (m["segment_sizes"].__setitem__(6, 1 << 16), m.update(overlaid=True)), "has not all of segment 6"),
        (lambda m: m.update(overlaid=True, parts=2), "2 parts.* has not all of segment 6"),
        (lambda m: m.update(host_sizes=[5, 11]), "host models do not match"),
        (lambda m: m.update(host_sizes=[m["host_sizes"][0]]), "host models do not match .* bytes are in none"),
        (lambda m: m.update(host_sizes=[20, -5]), "host models do not match"),
        (lambda m: m["tensors"][0].update(offset=1), "tensor 'x' leaves segment 2"),
        (lambda m: m["tensors"][0].update(segment=6), "tensor 'x': .* in segment 6 is impossible"),
        (lambda m: m["tensors"][0].update(shape=[0]), "impossible"),
        (lambda m: m["tensors"][1].update(name="x"), "two tensors are called 'x'"),
        (lambda m: m["inputs"][0].update(tensor="z"), "port 'in': no tensor 'z'"),
        (lambda m: m["inputs"][0].update(perm=[0, 0, 1]), "not a permutation"),
        (lambda m: m["inputs"][0].update(shape=[1, 8, 9]), "port 'in': shape"),
        (lambda m: m["jobs"][0].update(layer=2), "job 0: layer 2"),
        (lambda m: m["jobs"][0].update(engine=1), "engine 1 does not exist"),
        (lambda m: m["jobs"][0].update(body_pc=4), "job 0: entry PC beyond the code"),
        (lambda m: m["jobs"][0].update(prologue_pc=-1), "job 0: entry PC beyond the code"),
        (lambda m: m["jobs"][0].update(window_after=-1), "window_after -1"),
        (lambda m: m["jobs"][0].update(waits=[[0, 1]]), "job 0: event 0"),
        (lambda m: m["jobs"][0].update(signal=1), "job 0: event 1"),
        (lambda m: m["jobs"][0].update(signal=0), "job 0: event 0"),
        (lambda m: m["steps"][0].update(count=2), "step 0: jobs 0 to 2 of 1"),
        (lambda m: m["steps"][0].update(first=-1), "step 0: jobs -1"),
        (lambda m: m["steps"][0].update(kind="host", host=2), "step 0: host model 2 of 2"),
        (lambda m: m["steps"][0].update(inputs=["z"]), "step 0: no tensor 'z'"),
        (lambda m: m["cancel_points"][0].update(pc=4), "cancellation point 0: job 0 or PC 4 does not exist"),
        (lambda m: m["cancel_points"][0].update(pc=2), "cancellation point 0: PC 2 holds ST2, not CANCEL"),
        (lambda m: m["cancel_points"][0].update(point=1), "cancellation point 0: called 1"),
        (lambda m: m["cancel_points"][0].update(reload=[4]), "cancellation point 0: PC 4, .* is no load"),
        (lambda m: m["cancel_points"][0].update(reload=[0, 2]), "cancellation point 0: PC 2, .* is no load"),
        (lambda m: m["cancel_points"][0].update(semaphores=[[32, 1]]), "cancellation point 0: semaphore 32"),
        (lambda m: m["cancel_points"][0].update(semaphores=[[0, 256]]), "semaphore 0 cannot hold 256"),
        (lambda m: m["cancel_points"][0]["live"][0].update(offset=-1), "point 0: live range .* at -1 leaves lv1"),
        (lambda m: m["cancel_points"][0]["live"][0].update(size=1 << 30), "point 0: live range .* leaves lv1"),
        (lambda m: m["cancel_points"][0]["live"][0].update(space="lv2"), r"leaves lv2 \(segment 0\)"),
        (lambda m: m["jobs"][0]["live"][0].update(offset=33), r"job 0: live range of 32 .* lv2 \(segment 6\)"),
        (lambda m: m["jobs"][0]["live"][0].update(source_offset=33), "job 0: the copy of a clean range"),
        (lambda m: m["jobs"][0]["live"][0].update(source_segment=7), "job 0: the copy of a clean range"),
        (lambda m: m["jobs"][0].update(window=[0, 1]), "job 0: window of 1 bytes at 0 leaves segment 7"),
        (lambda m: m["relocations"][0].update(pc=4), "relocation 0: PC 4"),
        (lambda m: m["relocations"][0].update(field="speed"), "relocation 0: LD2 has no field 'speed'"),
        (lambda m: m["relocations"][0].update(field="src_seg"), "relocation 0: field 'src_seg' is no address"),
        (lambda m: m.update(events=-1), "events: -1 events are impossible"),
        (lambda m: m.update(events=1 << 40), "events: 1099511627776 events are impossible"),
        (lambda m: m["segment_sizes"].__setitem__(4, 1 << 60), "segment 4 of 1152921504606846976 bytes exceeds DRAM"),
        (lambda m: m["tensors"][0].update(scale=0), "tensor 'x': scale 0.0 is no positive number"),
        (lambda m: m["tensors"][0].update(scale=float("nan")), "tensor 'x': scale nan"),
        (lambda m: m["tensors"][0].update(scale=float("inf")), "tensor 'x': scale inf"),
        (lambda m: m["tensors"][0].update(zero_point=128), "tensor 'x': zero point 128 is beyond int8"),
        (lambda m: m["tensors"][0].update(shape=[1] * 40 + [64]), "tensor 'x': 41 dimensions"),
        (lambda m: m["inputs"][0].update(dtype="object"), "port 'in': unknown type 'object'"),
        (lambda m: m["inputs"][0].update(shape=[1, -8, -8]), r"port 'in': shape \[1, -8, -8\] is impossible"),
        (lambda m: m["inputs"][0].update(perm=[1, 0]), "port 'in': .* does not permute 3 dimensions"),
        (lambda m: m["outputs"][0].update(perm=[1, 0]), "port 'out': .* does not permute 3 dimensions"),
        (lambda m: m["inputs"].append(m["inputs"][0]), "two ports of one direction are called 'in'"),
        (lambda m: m["layers"][0].update(estimated_load=-1), "layer 0: estimated_load of -1 cycles"),
        (lambda m: m["layers"][1].update(estimated_compute=1 << 62), "layer 1: estimated_compute of"),
        (lambda m: m["layers"][1].update(measured_stream=-5), "layer 1: measured_stream of -5 cycles"),
        (lambda m: m["layers"][0].update(macs=-1), "layer 0: macs -1 is impossible"),
        (lambda m: m["jobs"][0].update(worst_cycles=-1), "job 0: worst_cycles -1"),
        (lambda m: (m.update(events=1), m["jobs"][0].update(waits=[[0, -1]])), "job 0: it waits for -1 signals"),
        (lambda m: (m.update(events=1), m["jobs"][0].update(waits=[[0, 9]])), "job 0: it waits for 9 signals"),
        (lambda m: m["cancel_points"][0].update(estimated_interval=-1), "point 0: estimated_interval of -1 cycles"),
        (lambda m: m["cancel_points"][0].update(worst_interval=1 << 50), "point 0: worst_interval of"),
        (lambda m: m["cancel_points"][0].update(reload=[0] * 2000), "point 0: 2000 loads to run again, at most 360"),
        (lambda m: m["cancel_points"][0].update(semaphores=[[0, 1], [0, 2]]), "point 0: a semaphore has two counts"),
        (lambda m: m["cancel_points"][0]["live"][0].update(space="lv0_act"), "point 0: dirty lv0_act"),
        (lambda m: m["cancel_points"].clear(), "code, PC 1: CANCEL 0 is not in the table"),
    ],
)
def test_inconsistent_metadata_is_refused_by_place(change, message):
    with pytest.raises(ImageError, match=message):
        Image.from_bytes(repack(change))


def test_illegal_code_is_refused_by_pc():
    image = full_image()
    image.code = Insn(Op.END).encode() + bytes(64) + image.code[128:]
    with pytest.raises(ImageError, match="code, PC 1: illegal opcode 0x00"):
        image.validate()
    image.code = image.code[:-1]
    with pytest.raises(ImageError, match="not a multiple of 64"):
        image.validate()


def test_valid_variations():
    image = full_image()
    image.meta.events = 2
    image.meta.jobs.append(JobInfo(layer=1, engine=0, body_pc=0, prologue_pc=2, waits=[(0, 1), (1, 1)], signal=1))
    image.meta.steps.append(StepInfo(kind="jobs", first=1, count=1))
    image.validate()


def test_tensor_lookup():
    assert full_image().tensor("y").segment == 3
    with pytest.raises(KeyError, match="'copy' has no tensor 'z'"):
        full_image().tensor("z")


def test_saving_replaces_a_file_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "model.cimg"
    image = copy_image(TINY)
    image.save(path)
    before = path.read_bytes()

    def full(self, raw):
        self.touch()
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space"):
        image.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def with_instruction(params, insn):
    image = copy_image(params)
    image.code = insn.encode() + image.code
    image.meta.segment_sizes[0] = len(image.code)
    image.meta.jobs[0].body_pc += 1
    return image


@pytest.mark.parametrize("name", ["wait", "signal"])
@pytest.mark.parametrize("op", [Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0, Op.MAC, Op.VEC])
def test_semaphores_that_the_hardware_has_not_are_refused(op, name):
    """The hardware would stop at them with a fault."""
    params = dataclasses.replace(TINY, semaphores=16)
    segments = {"src_seg": 6 if op in (Op.ST2, Op.LD1) else 0, "dst_seg": {Op.LD2: 6, Op.ST1: 6, Op.ST2: 2}.get(op, 0)}
    fields = {} if op in (Op.MAC, Op.VEC) else segments
    with_instruction(params, Insn(op, {**fields, name: 1 << 15})).validate()
    for bits in (1 << 16, 1 << 31, 1 | 1 << 16):
        with pytest.raises(ImageError, match=f"PC 0: {name} of {op.name} has bits beyond the 16 semaphores"):
            with_instruction(params, Insn(op, {**fields, name: bits})).validate()


def test_pes_that_the_hardware_has_not_are_refused():
    with_instruction(TINY, Insn(Op.LD0, {"pe_mask": (1 << TINY.pes) - 1})).validate()
    for bits in (1 << TINY.pes, 1 << 15):
        with pytest.raises(ImageError, match=f"PC 0: pe_mask of LD0 has bits beyond the {TINY.pes} PEs"):
            with_instruction(TINY, Insn(Op.LD0, {"pe_mask": bits})).validate()
    with_instruction(TINY, Insn(Op.LD1, {"src_seg": 6, "pe_mask": 1 << 15})).validate()  # which ignores it
