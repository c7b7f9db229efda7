"""Which images are legal, written a second time and by hand: nothing of this comes from the loader's own checks.

An image is given as its file has it: metadata as values of JSON, code, weights and host models as bytes. From the
product come numbers of opcodes and where fields lie in an instruction, and the parameters of the hardware.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, prod
from typing import Any

from hw.contract.isa import Op, field_place

_WORD = 64  #: bytes of an instruction
_CODE, _WEIGHTS, _LV2, _WINDOWS = 0, 1, 6, 7
_BYTES = {"int8": 1, "uint8": 1, "int32": 4, "float32": 4, "int64": 8}
_ZERO_POINTS = {"int8": (-128, 127), "uint8": (0, 255)}
_CYCLES, _WORK, _EVENTS, _RELOADS, _DIMENSIONS = 2**40, 2**56, 2**16, 360, 32
_LOADS = {Op.LD2, Op.LD1, Op.LD0}
_SIGNED = [f"{end}_s{loop}" for end in ("src", "dst") for loop in "210"]
Meta = dict[str, Any]


class Broken(Exception):
    """A rule that an image breaks."""


@dataclass(frozen=True)
class ImageFile:
    """The parts of an image file, and the parameters of the hardware by name."""

    meta: Meta
    code: bytes
    weights: bytes
    host: list[bytes]
    hardware: dict[str, Any]

    @cached_property
    def count(self) -> int:
        """Instructions."""
        return len(self.code) // _WORD

    def op(self, pc: int) -> int:
        """Its opcode."""
        return self.code[pc * _WORD]

    def field(self, pc: int, name: str) -> int:
        """A field of a copy or a CANCEL."""
        offset, width = field_place(Op(self.op(pc)), name)
        value = int.from_bytes(self.code[pc * _WORD : (pc + 1) * _WORD], "little") >> offset & (1 << width) - 1
        return value - (1 << width) if name in _SIGNED and value >> (width - 1) else value

    @property
    def word(self) -> int:
        """Bytes of a word of LV1 and LV2."""
        return self.hardware["pes"] * self.hardware["rows"]


def why_illegal(image: ImageFile) -> str:
    """The first rule that ``image`` breaks; empty if it is legal."""
    try:
        for rule in (_sizes, _tensors, _ports, _layers, _jobs, _steps, _points, _code, _relocations, _kept_weights):
            rule(image)
    except Broken as broken:
        return str(broken)
    return ""


def _need(truth: bool, what: str) -> None:
    if not truth:
        raise Broken(what)


def _within(value: float, low: float, high: float, what: str) -> None:
    _need(low <= value <= high, f"{what}: {value} is not within {low} to {high}")


def _sizes(image: ImageFile) -> None:
    meta, sizes, hardware = image.meta, image.meta["segment_sizes"], image.hardware
    for number, size in enumerate(sizes):
        _within(size, 0, max(hardware["dram_bytes"], hardware["lv2_bytes"]), f"size of segment {number}")
    _within(len(image.code), 0, sizes[_CODE], "code")
    _within(len(image.weights), 0, sizes[_WEIGHTS], "weights")
    overlaid, parts = meta.get("overlaid", False), meta.get("parts", 0)
    if overlaid:
        _need(not parts, "segments that begin together have no parts")
        _within(sizes[_LV2], 0, sizes[_WINDOWS], "segment 6 within 7")
    together = sizes[_WINDOWS] if overlaid else sizes[_LV2] + sizes[_WINDOWS]
    _within(together, 0, hardware["lv2_bytes"], "both segments in LV2")
    _within(meta.get("events", 0), 0, _EVENTS, "events")
    _need(meta.get("host_sizes", []) == [len(model) for model in image.host], "sizes of host models")
    if parts:
        _within(parts, 2, hardware["engines"], "parts")
        _need(sizes[_WINDOWS] % (parts * image.word) == 0, "parts of segment 7 are whole words")


def _tensors(image: ImageFile) -> None:
    names = [tensor["name"] for tensor in image.meta["tensors"]]
    _need(len(set(names)) == len(names), "names of tensors")
    for tensor in image.meta["tensors"]:
        _within(tensor["segment"], 2, 5, "segment of a tensor")
        _need(all(n >= 1 for n in tensor["shape"]), "shape of a tensor")
        _within(len(tensor["shape"]), 0, _DIMENSIONS, "dimensions of a tensor")
        size = _BYTES[tensor["dtype"]] * prod(tensor["shape"])
        _within(tensor["offset"], 0, image.meta["segment_sizes"][tensor["segment"]] - size, "offset of a tensor")
        scale = tensor.get("scale", 1.0)
        _need(isfinite(scale) and scale > 0, "scale of a tensor")
        _within(tensor.get("zero_point", 0), *_ZERO_POINTS.get(tensor["dtype"], (0, 0)), "zero point of a tensor")


def _ports(image: ImageFile) -> None:
    tensors = {tensor["name"]: tensor for tensor in image.meta["tensors"]}
    for direction in ("inputs", "outputs"):
        for port in image.meta[direction]:
            _need(port["tensor"] in tensors, "tensor of a port")
            tensor = tensors[port["tensor"]]
            _need(prod(port["shape"]) == prod(tensor["shape"]), "a port has as many elements as its tensor")
            _need(all(n >= 1 for n in port["shape"]), "shape of a port")
            _within(len(port["shape"]), 0, _DIMENSIONS, "dimensions of a port")
            _need(sorted(port["perm"]) == list(range(len(port["perm"]))), "a permutation")
            moved = port["shape"] if direction == "inputs" else tensor["shape"]
            _need(len(port["perm"]) in (0, len(moved)), "a permutation of all dimensions")
            if port.get("quantise"):
                _need(tensor["dtype"] in _ZERO_POINTS, "a type that is quantised")


def _layers(image: ImageFile) -> None:
    for layer in image.meta["layers"]:
        for name, value in layer.items():
            if name in ("macs", "input_bytes", "weight_bytes", "output_bytes"):
                _within(value, 0, _WORK, name)
            elif name.startswith(("estimated_", "measured_")) and value is not None:
                _within(value, 0, _CYCLES, name)


def _jobs(image: ImageFile) -> None:
    meta, parts = image.meta, image.meta.get("parts", 0)
    room, events = meta["segment_sizes"][_WINDOWS], meta.get("events", 0)
    for number, job in enumerate(meta["jobs"]):
        _within(job["layer"], 0, len(meta["layers"]) - 1, "layer of a job")
        _within(job["engine"], 0, image.hardware["engines"] - 1, "engine of a job")
        _within(job["body_pc"], 0, image.count - 1, "body of a job")
        if job.get("prologue_pc") is not None:
            _within(job["prologue_pc"], 0, image.count - 1, "prologue of a job")
        _within(job.get("window_after", 0), 0, 65535, "window_after")
        _within(job.get("worst_cycles", 0), 0, _CYCLES, "worst_cycles")
        _within(len(job.get("waits", [])), 0, 2, "waits")
        for event, times in job.get("waits", []):
            _within(event, 0, events - 1, "event that is waited for")
            _within(times, 0, len(meta["jobs"]), "signals that are waited for")
        if job.get("signal") is not None:
            _within(job["signal"], 0, events - 1, "event that is signalled")
        start, size = job.get("window", (0, 0))
        _within(start, 0, room, "begin of a window")
        _within(size, 0, room - start, "end of a window")
        for earlier in job.get("after", []):
            _within(earlier, 0, number - 1, "an earlier job")
        if parts:
            free = not job["engine"] and not job.get("waits") and job.get("signal") is None and not events
            _need(free, "placed jobs name no engines and no events")
        else:
            _need(not job.get("after"), "edges are for placed images")
        for live in job.get("live", []):
            _live(image, live)


def _live(image: ImageFile, live: Meta) -> None:
    hardware, sizes = image.hardware, image.meta["segment_sizes"]
    rooms = {
        ("lv2", 6): sizes[_LV2], ("lv2", 7): sizes[_WINDOWS], ("lv1", 0): hardware["lv1_bytes"],
        ("lv0_act", 0): hardware["lv0_act_bytes"], ("lv0_wgt", 0): hardware["lv0_wgt_bytes"],
        ("lv0_acc", 0): 4 * hardware["pes"] * hardware["cols"] * hardware["lv0_acc_rows"],
    }  # fmt: skip
    place = live["space"], live["segment"]
    _need(place in rooms, "memory of a live range")
    _within(live["size"], 0, inf, "size of a live range")
    _within(live["offset"], 0, rooms[place] - live["size"], "live range")
    if live["space"] == "lv2" and not live["dirty"]:
        _within(live.get("source_segment", 0), 0, 5, "segment of a copy")
        room = sizes[live.get("source_segment", 0)]
        _within(live.get("source_offset", 0), 0, room - live["size"], "copy of a clean range")
    _need(not (live["dirty"] and live["space"] in ("lv0_act", "lv0_wgt")), "LV0 of operands is never dirty")


def _steps(image: ImageFile) -> None:
    names = {tensor["name"] for tensor in image.meta["tensors"]}
    for step in image.meta["steps"]:
        if step["kind"] == "jobs":
            first, count = step.get("first", 0), step.get("count", 0)
            _within(first, 0, len(image.meta["jobs"]), "first job of a step")
            _within(count, 0, len(image.meta["jobs"]) - first, "jobs of a step")
        else:
            _within(step.get("host", 0), 0, len(image.host) - 1, "host model of a step")
        _need(names.issuperset([*step.get("inputs", []), *step.get("outputs", [])]), "tensors of a step")


def _points(image: ImageFile) -> None:
    points = image.meta.get("cancel_points", [])
    for number, point in enumerate(points):
        _need(point["point"] == number, "points are numbered in order")
        _within(point["job"], 0, len(image.meta["jobs"]) - 1, "job of a point")
        _within(point["pc"], 0, image.count - 1, "PC of a point")
        _need(image.op(point["pc"]) == Op.CANCEL, "a point lies at a CANCEL")
        _within(point.get("estimated_interval", 0), 0, _CYCLES, "estimated_interval")
        _within(point.get("worst_interval", 0), 0, _CYCLES, "worst_interval")
        _within(len(point.get("reload", [])), 0, _RELOADS, "loads to run again")
        for pc in point.get("reload", []):
            _within(pc, 0, image.count - 1, "PC of a load to run again")
            _need(image.op(pc) in _LOADS, "only loads run again")
        counts = point.get("semaphores", [])
        _need(len({semaphore for semaphore, _ in counts}) == len(counts), "a semaphore has one count")
        for semaphore, count in counts:
            _within(semaphore, 0, image.hardware["semaphores"] - 1, "semaphore of a point")
            _within(count, 0, image.hardware["semaphore_max"], "count of a semaphore")
        for live in point.get("live", []):
            _live(image, live)


def _code(image: ImageFile) -> None:
    table = {point["pc"]: number for number, point in enumerate(image.meta.get("cancel_points", []))}
    for pc in range(image.count):
        if image.op(pc) == Op.CANCEL:
            _need(table.get(pc) == image.field(pc, "point"), "a CANCEL is in the table")
        elif image.op(pc) != Op.END:
            for name in ("wait", "signal"):
                _within(image.field(pc, name), 0, 2 ** image.hardware["semaphores"] - 1, f"mask of {name}")
            if image.op(pc) == Op.LD0:
                _within(image.field(pc, "pe_mask"), 0, 2 ** image.hardware["pes"] - 1, "mask of PEs")


def _relocations(image: ImageFile) -> None:
    for entry in image.meta.get("relocations", []):
        _within(entry["pc"], 0, image.count - 1, "PC of a relocation")
        _need(image.op(entry["pc"]) not in (Op.END, Op.CANCEL, Op.MAC, Op.VEC), "only copies are relocated")
        _need(entry["field"] in ("src", "dst"), "only addresses are relocated")


# -- weights that stay in LV2 for the next inference -------------------------------------------------------------
def _kept_weights(image: ImageFile) -> None:
    low, size = image.meta.get("weights_only", (0, 0))
    if (low, size) == (0, 0):
        return
    high = low + size
    _need(bool(image.meta.get("overlaid")), "weights stay where segments 6 and 7 begin together")
    _within(low, 0, image.meta["segment_sizes"][_WINDOWS], "begin of weights that stay")
    _within(size, 0, image.meta["segment_sizes"][_WINDOWS] - low, "end of weights that stay")
    relocated = {entry["pc"] for entry in image.meta.get("relocations", [])}
    _need(not any(image.op(pc) in (Op.LD2, Op.ST1) for pc in relocated), "no address of a write to LV2 is relocated")
    owner: dict[int, int] = {}
    prologues: set[int] = set()
    for number, job in enumerate(image.meta["jobs"]):
        start, length = job.get("window", (0, 0))
        if not length or start >= high or start + length <= low:
            continue
        _need(low <= start and start + length <= high, "a window lies within what stays, or outside")
        for at in range(start, start + length):
            _need(owner.setdefault(at, number) == number, "each byte that stays has one window")
        if job.get("prologue_pc") is not None:
            prologues.update(_straight(image, job["prologue_pc"]))
            _brings(image, job["prologue_pc"], start, length)
    for pc in range(image.count):
        if image.op(pc) in (Op.LD2, Op.ST1) and pc not in prologues:
            first, end = _reach(image, pc)
            _need(end <= low or high <= first, "all other code writes elsewhere")


def _straight(image: ImageFile, pc: int) -> Iterator[int]:
    while pc < image.count:
        yield pc
        if image.op(pc) == Op.END:
            return
        pc += 1


def _brings(image: ImageFile, pc: int, start: int, length: int) -> None:
    """The prologue at ``pc`` writes the window from its first byte to its last, with weights and nothing else."""
    at = start
    for here in _straight(image, pc):
        if image.op(here) == Op.END:
            _need(at == start + length, "a prologue brings its whole window")
            return
        _need(image.op(here) == Op.LD2, "a prologue loads")
        get = {name: image.field(here, name) for name in ("src_seg", "dst_seg", "src", "dst", "len", "lo", "hi")}
        _need((get["src_seg"], get["dst_seg"]) == (_WEIGHTS, _WINDOWS), "a prologue brings weights")
        _need(get["lo"] == 0 and get["hi"] >= get["len"], "a prologue reads all of what it writes")
        counts = {loop: image.field(here, f"n{loop}") for loop in "210"}
        for loop in "10":
            whole = image.field(here, f"lo{loop}") == 0 and image.field(here, f"hi{loop}") >= counts[loop]
            _need(whole, "a prologue leaves no run out")
        _need(get["len"] * prod(counts.values()) <= start + length - at, "a prologue stays in its window")
        for source, target in _runs(image, here, counts, get):
            _need(target == at, "a prologue brings byte after byte")
            _within(source, 0, len(image.weights) - get["len"], "weights that a prologue brings")
            at += get["len"]
    raise Broken("a prologue ends")


def _runs(image: ImageFile, pc: int, counts: dict[str, int], get: dict[str, int]) -> Iterator[tuple[int, int]]:
    strides = {name: image.field(pc, name) for name in _SIGNED}
    for i2 in range(counts["2"]):
        for i1 in range(counts["1"]):
            for i0 in range(counts["0"]):
                source, target = (
                    get[end] + i2 * strides[f"{end}_s2"] + i1 * strides[f"{end}_s1"] + i0 * strides[f"{end}_s0"]
                    for end in ("src", "dst")
                )
                yield source, target


def _reach(image: ImageFile, pc: int) -> tuple[int, int]:
    """First byte that a copy may write, and the end of the last."""
    ends = [(image.field(pc, f"n{loop}") - 1) * image.field(pc, f"dst_s{loop}") for loop in "210"]
    start = image.field(pc, "dst")
    return start + sum(min(e, 0) for e in ends), start + sum(max(e, 0) for e in ends) + image.field(pc, "len")


def packed(image: ImageFile, meta: bytes) -> bytes:
    """The image as a file, with ``meta`` as its metadata; header and digest are right."""
    host = b"".join(image.host)
    body = meta + image.code + image.weights + host
    sizes = b"".join(len(part).to_bytes(4, "little") for part in (meta, image.code, image.weights, host))
    return b"CIMG\x01\0\0\0" + sizes + bytes(8) + hashlib.sha256(body).digest() + body
