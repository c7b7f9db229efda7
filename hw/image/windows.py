"""Finds the weights that are still in LV2 when the next inference begins: the bytes of segment 7 that an image leaves
to them.

``ImageMeta.weights_only`` is a promise: the only code that writes there is prologues that load the window of their job
from the weights, and each job has its window to itself. So a driver that knows that these bytes still hold what a
prologue brought may leave that prologue out. The promise is checked, as an image that breaks it would spoil the next
inference of another one with the same weights: every instruction that can write to LV2 either is one of such a prologue
or has all that it may write elsewhere. What the driver itself writes for an image, as when it brings a suspended task
back, it does not count as weights: there the tables of the image need not be believed.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from hw.contract.isa import DESTINATION_SEGMENTS, INSN_BYTES, LV2_SEGMENTS, Op, Segment, field_place
from hw.image.tables import Contents

_LOOPS = ("2", "1", "0")
#: What can write to LV2, by opcode.
_WRITES = frozenset(op for op, segments in DESTINATION_SEGMENTS.items() if not set(segments).isdisjoint(LV2_SEGMENTS))
_NAMES = (
    "src_seg", "dst_seg", "src", "dst", "len", "lo", "hi",
    *(f"{kind}{loop}" for loop in _LOOPS for kind in ("n", "src_s", "dst_s")), "lo1", "hi1", "lo0", "hi0",
)  # fmt: skip
_PLACES = [(name, *field_place(Op.LD2, name)) for name in _NAMES]
_SIGNED = 1 << field_place(Op.LD2, "src_s0")[1]


@dataclass(frozen=True)
class WindowWeights:
    """Describes what the prologue of a job leaves in LV2: bytes from ``offset`` to ``end`` of segment 7, with this
    ``digest``."""

    offset: int
    end: int
    digest: bytes


class _Promise(ValueError):
    """Says what is wrong with a prologue."""


def window_weights(image: Contents) -> dict[int, WindowWeights]:
    """Return by job what its prologue leaves in LV2 for the next inference. The image must be valid."""
    kept = {}
    for number in _keeping(image):
        start, length = image.meta.jobs[number].window
        kept[number] = WindowWeights(start, start + length, _digest(image, number))
    return kept


def _keeping(image: Contents) -> list[int]:
    """Return the jobs whose prologues load into the part of segment 7 that is theirs."""
    low, size = image.meta.weights_only
    return [
        number
        for number, job in enumerate(image.meta.jobs)
        if job.prologue_pc is not None and job.window[1] and low <= job.window[0] and sum(job.window) <= low + size
    ]


def promise_problems(image: Contents) -> Iterator[str]:
    """Yield how ``image`` breaks its promise, if it gives one. Its tables must be consistent."""
    meta = image.meta
    low, size = meta.weights_only
    if not size and not low:
        return
    place = f"weights_only: {size} bytes from {low} on"
    if meta.parts or not meta.overlaid:
        yield f"{place} are for images whose segments 6 and 7 begin at the same byte"
    if low < 0 or size < 0 or low + size > meta.segment_sizes[Segment.WINDOWS]:
        yield f"{place} leave segment {Segment.WINDOWS} ({meta.segment_sizes[Segment.WINDOWS]} bytes)"
        return
    yield from _relocations(image, place)
    yield from _windows(image, low, low + size, place)
    for number in _keeping(image):
        try:
            _digest(image, number)
        except _Promise as problem:
            yield f"{place}: job {number}: {problem}"
    yield from _writes(image, low, low + size, place)


def _relocations(image: Contents, place: str) -> Iterator[str]:
    """Yield the relocations that change an address of an instruction that writes to LV2."""
    for i, entry in enumerate(image.meta.relocations):
        if image.code[entry.pc * INSN_BYTES] in _WRITES:
            yield f"{place} cannot be known: relocation {i} changes what PC {entry.pc} writes there"


def _windows(image: Contents, low: int, high: int, place: str) -> Iterator[str]:
    before = low
    for start, length, number in sorted((*job.window, i) for i, job in enumerate(image.meta.jobs) if job.window[1]):
        if start + length <= low or start >= high:
            continue
        if start < before or start + length > high:
            yield f"{place}: job {number} has its window of {length} bytes at {start} not to itself"
            return
        before = start + length


def _writes(image: Contents, low: int, high: int, place: str) -> Iterator[str]:
    """Yield what writes between ``low`` and ``high`` and is no prologue that loads its own window there."""
    checked = _code_of_prologues(image, _keeping(image))
    for pc in range(len(image.code) // INSN_BYTES):
        if image.code[pc * INSN_BYTES] not in _WRITES or pc in checked:
            continue
        fields = _fields(image, pc)
        first = last = fields["dst"]
        for loop in _LOOPS:
            reach = (fields[f"n{loop}"] - 1) * fields[f"dst_s{loop}"]
            first, last = first + min(reach, 0), last + max(reach, 0)
        if first < high and low < last + fields["len"]:
            yield f"{place}: PC {pc} writes there, which is in no prologue that loads its own window"
            return


def _code_of_prologues(image: Contents, jobs: list[int]) -> set[int]:
    """Return the PCs of the prologues of ``jobs``, each of which has an END."""
    found: set[int] = set()
    for number in jobs:
        pc = image.meta.jobs[number].prologue_pc
        while pc is not None and pc not in found:
            found.add(pc)
            pc = None if image.code[pc * INSN_BYTES] == Op.END else pc + 1
    return found


def _digest(image: Contents, number: int) -> bytes:
    """Return the digest of what the prologue of job ``number`` brings. It has to load the window from its first byte to
    its last."""
    job, code, weights = image.meta.jobs[number], image.code, image.weights
    start, length = job.window
    pc, at, digest = job.prologue_pc, start, hashlib.sha256()
    assert pc is not None
    while pc * INSN_BYTES < len(code) and code[pc * INSN_BYTES] == Op.LD2:
        for source, size in _runs(_fields(image, pc), at, start + length - at):
            if source + size > len(weights):
                raise _Promise(f"PC {pc} loads weights that the image does not have")
            digest.update(weights[source : source + size])
            at += size
        pc += 1
    if at != start + length or pc * INSN_BYTES >= len(code) or code[pc * INSN_BYTES] != Op.END:
        raise _Promise(f"its prologue does not load its window of {length} bytes, and nothing else")
    return digest.digest()


def _runs(fields: dict[str, int], at: int, room: int) -> Iterator[tuple[int, int]]:
    """Yield source and size of what a load writes from ``at`` on without a gap, in ``room`` bytes at most."""
    counts, size = [fields[f"n{loop}"] for loop in _LOOPS], fields["len"]
    whole = fields["lo"] == fields["lo1"] == fields["lo0"] == 0 and fields["hi"] >= size
    whole = whole and fields["hi1"] >= counts[1] and fields["hi0"] >= counts[2]
    if (fields["src_seg"], fields["dst_seg"]) != (Segment.WEIGHTS, Segment.WINDOWS) or not whole:
        raise _Promise("its prologue loads something else than weights")
    if size * counts[0] * counts[1] * counts[2] > room:
        raise _Promise("its prologue loads more than its window")
    for i2 in range(counts[0]):
        for i1 in range(counts[1]):
            for i0 in range(counts[2]):
                steps = tuple(zip(_LOOPS, (i2, i1, i0), strict=True))
                source, target = (
                    fields[end] + sum(i * fields[f"{end}_s{loop}"] for loop, i in steps) for end in ("src", "dst")
                )
                if target != at or source < 0:
                    raise _Promise("its prologue does not load its window in order")
                yield source, size
                at += size


def _fields(image: Contents, pc: int) -> dict[str, int]:
    """Return the fields of a copy that say what it moves."""
    word = int.from_bytes(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES], "little")
    values = {name: word >> offset & (1 << width) - 1 for name, offset, width in _PLACES}
    for loop in _LOOPS:
        for name in (f"src_s{loop}", f"dst_s{loop}"):
            if values[name] >= _SIGNED // 2:
                values[name] -= _SIGNED
    return values
