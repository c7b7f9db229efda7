"""Numbers of an image at the bounds of what they may be: one below, on, one above.

Whether the image is legal with them is for ``image_rules`` to say: here nothing is judged.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from benchmarks.trust.image_rules import ImageFile
from benchmarks.trust.words import with_bits
from hw.contract.isa import INSN_BYTES, Op, field_place

_LV2, _WINDOWS = 6, 7
CODE_SHARE = 0.2  #: share of changes that are of numbers in the code
_MOST = {"cycles": 2**40, "work": 2**56}
_ESTIMATES = [f"{how}_{what}" for how in ("estimated", "measured") for what in ("load", "compute", "stream")]
_WORK = ("macs", "input_bytes", "weight_bytes", "output_bytes")
_ZERO_POINTS = {"int8": (-128, 127), "uint8": (0, 255)}
_BYTES = {"int8": 1, "uint8": 1, "int32": 4, "float32": 4, "int64": 8}


@dataclass(frozen=True)
class Number:
    """A number of the metadata: ``table[key]``, which may be from one of ``bounds`` to another. ``name``: its kind."""

    name: str
    table: Any
    key: Any
    bounds: Sequence[int]

    def set(self, rng: random.Random) -> None:
        """One below a bound, on it, or one above."""
        self.table[self.key] = rng.choice(self.bounds) + rng.choice((-1, 0, 1))


def kinds(image: ImageFile) -> set[str]:
    """Those of numbers of the metadata that ``image`` has."""
    return {number.name for number in _numbers(image)}


def change_one(rng: random.Random, image: ImageFile, kind: str = "") -> tuple[str, ImageFile]:
    """Set one number of ``image``, whose metadata is changed in place; returns its kind, and the image with it.
    ``kind``: of a number of the metadata; by default any, or one of the code."""
    if not kind and rng.random() < CODE_SHARE:
        return change_code(rng, image)
    chosen = kind or rng.choice(sorted(kinds(image)))
    rng.choice([number for number in _numbers(image) if number.name == chosen]).set(rng)
    return chosen, image


def _numbers(image: ImageFile) -> Iterator[Number]:
    meta = image.meta
    for source in (_of_segments, _of_tensors, _of_ports, _of_layers, _of_jobs, _of_steps, _of_points):
        yield from source(image)
    for i, entry in enumerate(meta.get("relocations", [])):
        yield Number("relocations.pc", meta["relocations"][i], "pc", (0, image.count - 1, entry["pc"]))


def _of_segments(image: ImageFile) -> Iterator[Number]:
    meta, sizes = image.meta, image.meta["segment_sizes"]
    memory = image.hardware
    needs = [{0, size, memory["dram_bytes"]} for size in sizes]
    needs[0].add(len(image.code))
    needs[1].add(len(image.weights))
    for tensor in meta["tensors"]:
        needs[tensor["segment"]].add(tensor["offset"] + _size(tensor))
    for live in _lives(meta):
        if live["space"] == "lv2":
            needs[live["segment"]].add(live["offset"] + live["size"])
    other = 0 if meta.get("overlaid") else sizes[_LV2]
    needs[_WINDOWS] |= {memory["lv2_bytes"] - other, *(sum(job["window"]) for job in meta["jobs"])}
    needs[_LV2].add(sizes[_WINDOWS] if meta.get("overlaid") else memory["lv2_bytes"] - sizes[_WINDOWS])
    for i, bounds in enumerate(needs):
        yield Number("segment_sizes", sizes, i, sorted(bounds))
    signals = [event for job in meta["jobs"] for event, _ in job.get("waits", [])]
    yield Number("events", meta, "events", (0, 2**16, max(signals, default=0) + 1))
    if meta.get("parts"):
        yield Number("parts", meta, "parts", (2, memory["engines"]))
    if meta.get("host_sizes"):
        yield Number("host_sizes", meta["host_sizes"], 0, meta["host_sizes"][:1])
    low, size = meta.get("weights_only", (0, 0))
    if size:
        meta["weights_only"] = [low, size]
        yield Number("weights_only", meta["weights_only"], 0, (0, low, sizes[_WINDOWS] - size))
        yield Number("weights_only", meta["weights_only"], 1, (0, size, sizes[_WINDOWS] - low))


def _of_tensors(image: ImageFile) -> Iterator[Number]:
    for tensor in image.meta["tensors"]:
        room = image.meta["segment_sizes"][tensor["segment"]] - _size(tensor)
        yield Number("tensors.offset", tensor, "offset", (0, room))
        yield Number("tensors.segment", tensor, "segment", (2, 5))
        low, high = _ZERO_POINTS.get(tensor["dtype"], (0, 0))
        yield Number("tensors.zero_point", tensor, "zero_point", (low, high))
        yield Number("tensors.scale", tensor, "scale", (0, 1))
        for i, length in enumerate(tensor["shape"]):
            yield Number("tensors.shape", tensor["shape"], i, (0, 1, length))


def _of_ports(image: ImageFile) -> Iterator[Number]:
    for port in image.meta["inputs"] + image.meta["outputs"]:
        for i, length in enumerate(port["shape"]):
            yield Number("ports.shape", port["shape"], i, (0, 1, length))
        for i in range(len(port["perm"])):
            yield Number("ports.perm", port["perm"], i, (0, len(port["perm"]) - 1))


def _of_layers(image: ImageFile) -> Iterator[Number]:
    for layer in image.meta["layers"]:
        for name in _WORK:
            yield Number("layers.work", layer, name, (0, _MOST["work"]))
        for name in _ESTIMATES:
            yield Number("layers.cycles", layer, name, (0, _MOST["cycles"]))


def _of_jobs(image: ImageFile) -> Iterator[Number]:
    meta = image.meta
    room, events = meta["segment_sizes"][_WINDOWS], meta.get("events", 0)
    for number, job in enumerate(meta["jobs"]):
        yield Number("jobs.layer", job, "layer", (0, len(meta["layers"]) - 1))
        yield Number("jobs.engine", job, "engine", (0, image.hardware["engines"] - 1))
        yield Number("jobs.body_pc", job, "body_pc", (0, image.count - 1, job["body_pc"]))
        if job.get("prologue_pc") is not None:
            yield Number("jobs.prologue_pc", job, "prologue_pc", (0, image.count - 1, job["prologue_pc"]))
        yield Number("jobs.window_after", job, "window_after", (0, 65535, job["window_after"]))
        yield Number("jobs.worst_cycles", job, "worst_cycles", (0, _MOST["cycles"]))
        job["window"] = list(job["window"])
        start, size = job["window"]
        yield Number("jobs.window begin", job["window"], 0, (0, start, room - size))
        yield Number("jobs.window size", job["window"], 1, (0, size, room - start))
        for wait in job["waits"]:
            yield Number("jobs.waits event", wait, 0, (0, events - 1))
            yield Number("jobs.waits times", wait, 1, (0, wait[1], len(meta["jobs"])))
        if job.get("signal") is not None:
            yield Number("jobs.signal", job, "signal", (0, events - 1))
        for i in range(len(job.get("after", []))):
            yield Number("jobs.after", job["after"], i, (0, number - 1))
        for live in job["live"]:
            yield from _of_live("jobs.live", image, live)


def _of_live(name: str, image: ImageFile, live: dict[str, Any]) -> Iterator[Number]:
    hardware, sizes = image.hardware, image.meta["segment_sizes"]
    rooms = {
        "lv2": sizes[live["segment"]], "lv1": hardware["lv1_bytes"], "lv0_act": hardware["lv0_act_bytes"],
        "lv0_wgt": hardware["lv0_wgt_bytes"],
        "lv0_acc": 4 * hardware["pes"] * hardware["cols"] * hardware["lv0_acc_rows"],
    }  # fmt: skip
    room, space = rooms[live["space"]], live["space"]
    yield Number(f"{name} {space} offset", live, "offset", (0, room - live["size"]))
    yield Number(f"{name} {space} size", live, "size", (0, room - live["offset"]))
    yield Number(f"{name} segment", live, "segment", (0, _LV2, _WINDOWS))
    if space == "lv2" and not live["dirty"]:
        there = sizes[live["source_segment"]]
        yield Number(f"{name} source_offset", live, "source_offset", (0, there - live["size"]))
        yield Number(f"{name} source_segment", live, "source_segment", (0, 5))


def _of_steps(image: ImageFile) -> Iterator[Number]:
    for step in image.meta["steps"]:
        if step["kind"] == "jobs":
            jobs = len(image.meta["jobs"])
            yield Number("steps.first", step, "first", (0, jobs - step["count"]))
            yield Number("steps.count", step, "count", (0, jobs - step["first"]))
        else:
            yield Number("steps.host", step, "host", (0, len(image.host) - 1))


def _of_points(image: ImageFile) -> Iterator[Number]:
    meta, hardware = image.meta, image.hardware
    for point in meta["cancel_points"]:
        yield Number("points.point", point, "point", (point["point"],))
        yield Number("points.job", point, "job", (0, len(meta["jobs"]) - 1))
        yield Number("points.pc", point, "pc", (0, point["pc"], image.count - 1))
        for name in ("estimated_interval", "worst_interval"):
            yield Number(f"points.{name}", point, name, (0, _MOST["cycles"]))
        for i, pc in enumerate(point["reload"]):
            yield Number("points.reload", point["reload"], i, (0, pc, image.count - 1, _other_than_load(image, pc)))
        if point["reload"]:
            yield _Length("points.reload length", point, "reload", (360,))
        for pair in point["semaphores"]:
            yield Number("points.semaphores number", pair, 0, (0, pair[0], hardware["semaphores"] - 1))
            yield Number("points.semaphores count", pair, 1, (0, hardware["semaphore_max"]))
        for live in point["live"]:
            yield from _of_live("points.live", image, live)
    if meta["cancel_points"]:
        yield _Last("points.last", meta, "cancel_points", ())


class _Length(Number):
    """The length of a list: its first entry is repeated."""

    def set(self, rng: random.Random) -> None:
        entries = self.table[self.key]
        self.table[self.key] = entries[:1] * (rng.choice(self.bounds) + rng.choice((-1, 0, 1)))


class _Last(Number):
    """The last entry of a table: it is missing, or stands there twice."""

    def set(self, rng: random.Random) -> None:
        entries = self.table[self.key]
        self.table[self.key] = rng.choice((entries[:-1], [*entries, entries[-1]]))


def _other_than_load(image: ImageFile, near: int) -> int:
    """The PC of an instruction close to ``near`` that is no load."""
    others = [pc for pc in range(image.count) if image.op(pc) not in (Op.LD2, Op.LD1, Op.LD0)]
    return min(others, key=lambda pc: abs(pc - near))


def _size(tensor: dict[str, Any]) -> int:
    return _BYTES[tensor["dtype"]] * prod(tensor["shape"])


def _lives(meta: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for table in ("jobs", "cancel_points"):
        for entry in meta[table]:
            yield from entry["live"]


# -- numbers in the code that metadata speaks of -----------------------------------------------------------------
def change_code(rng: random.Random, image: ImageFile) -> tuple[str, ImageFile]:
    """As :func:`change_one`, of the code that the metadata speaks of."""
    changes: list[Callable[[random.Random, ImageFile], tuple[str, int, str, int]]] = [_mask, _write, _prologue]
    if image.meta["cancel_points"]:
        changes.append(_cancel)
    name, pc, field, value = rng.choice(changes)(rng, image)
    place = slice(pc * INSN_BYTES, (pc + 1) * INSN_BYTES)
    offset, width = field_place(Op(image.op(pc)), field)
    code = bytearray(image.code)
    code[place] = with_bits(bytes(code[place]), offset, width, value & (1 << width) - 1)
    return name, ImageFile(image.meta, bytes(code), image.weights, image.host, image.hardware)


def _pcs(image: ImageFile, *ops: Op) -> list[int]:
    return [pc for pc in range(image.count) if image.op(pc) in ops]


def _mask(rng: random.Random, image: ImageFile) -> tuple[str, int, str, int]:
    pc = rng.choice(_pcs(image, Op.LD0))
    return "code: mask of PEs", pc, "pe_mask", 1 << (image.hardware["pes"] + rng.choice((-1, 0, 1)))


def _cancel(rng: random.Random, image: ImageFile) -> tuple[str, int, str, int]:
    pc = rng.choice(_pcs(image, Op.CANCEL))
    return "code: number of a CANCEL", pc, "point", image.field(pc, "point") + rng.choice((-1, 0, 1))


def _write(rng: random.Random, image: ImageFile) -> tuple[str, int, str, int]:
    """A write to LV2 that ends, or begins, where weights that stay do."""
    low, size = image.meta.get("weights_only", (0, 0))
    pc = rng.choice(_pcs(image, Op.LD2, Op.ST1))
    bound = rng.choice((low + size, low - image.field(pc, "len")))
    return "code: a write near weights that stay", pc, "dst", bound + rng.choice((-1, 0, 1))


def _prologue(rng: random.Random, image: ImageFile) -> tuple[str, int, str, int]:
    """A load of weights by a prologue, or another load, a little off."""
    starts = {job["prologue_pc"] for job in image.meta["jobs"]} - {None}
    pc = rng.choice([pc for pc in _pcs(image, Op.LD2) if pc in starts] or _pcs(image, Op.LD2))
    field = rng.choice(("src", "dst", "len", "hi", "n0", "src_seg", "dst_seg", "lo"))
    value = image.field(pc, field) + rng.choice((-1, 1))
    if field in ("src_seg", "dst_seg"):
        value = rng.choice(range(6)) if field == "src_seg" else rng.choice((_LV2, _WINDOWS))
    elif field in ("len", "n0"):
        value = max(1, value)
    return "code: a load of a prologue", pc, field, max(0, value)
