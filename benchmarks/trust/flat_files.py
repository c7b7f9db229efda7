"""Flat files with flaws: real ones, in which fields, bytes or ends were changed."""

import random
import struct
from dataclasses import dataclass
from functools import cache

import caesura
from compiler import Options, compile_model
from examples.digits import MODEL
from hw.contract.isa import INSN_BYTES, Op
from hw.contract.job import JOB
from hw.contract.layout import Record
from hw.contract.params import preset
from hw.image import HEADER, PORT, RELOCATION, Relocation, flat

_FORMAT = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
_CONSTANTS = (*range(9), 31, 32, 33, 63, 64, 65, 255, 256, 257, 1 << 16, 1 << 20, 1 << 31, (1 << 31) - 1)


@cache
def real_files() -> tuple[bytes, ...]:
    """What the compiler makes of the digits classifier: for one engine, for two with events, and with addresses that
    the driver relocates."""
    one = caesura.compile(MODEL, "tiny")
    two = compile_model(MODEL, preset("base"), name="digits", options=Options(engines=2))
    moved = caesura.compile(MODEL, "tiny")
    copies = [pc for pc in range(len(moved.code) // INSN_BYTES) if moved.code[pc * INSN_BYTES] == Op.LD1]
    moved.meta.relocations = [Relocation(pc, "src", f"segment{i}") for i, pc in enumerate(copies[:4])]
    return tuple(flat(image) for image in (one, two, moved))


@dataclass(frozen=True)
class FlatMember:
    """A member of a record in a file. ``record``: its name, ``at``: its first byte."""

    record: str
    member: str
    at: int
    size: int

    @property
    def largest(self) -> int:
        """What it can hold."""
        return (1 << 8 * self.size) - 1

    def get(self, file: bytes) -> int:
        """Its value."""
        (value,) = struct.unpack_from(_FORMAT[self.size], file, self.at)
        return value

    def put(self, file: bytearray, value: int) -> None:
        """Change it."""
        struct.pack_into(_FORMAT[self.size], file, self.at, value & self.largest)


def places(file: bytes) -> list[FlatMember]:
    """Every member of every record of a real file."""
    header = HEADER.unpack(file[: HEADER.size])
    tables: list[tuple[Record, int, int]] = [
        (HEADER, 0, 1), (PORT, header["port_table"], header["inputs"] + header["outputs"]),
        (JOB, header["job_table"], header["jobs"]), (RELOCATION, header["relocation_table"], header["relocations"]),
    ]  # fmt: skip
    return [
        FlatMember(record.name, member.name, table + number * record.size + member.offset, member.size)
        for record, table, count in tables
        for number in range(count)
        for member in record.members
    ]


@cache
def _bounds(file: bytes) -> list[int]:
    """Numbers that a field may be compared with: those of the header, and where something begins or ends."""
    known = set(HEADER.unpack(file[: HEADER.size]).values()) | {len(file), *_CONSTANTS}
    known |= {place.get(file) for place in places(file) if place.record == PORT.name}
    return sorted(value + step for value in known for step in (-64, -8, -4, -1, 0, 1, 8))


def values(file: bytes, place: FlatMember) -> list[int]:
    """What is worth a try in ``place``: its bounds and those of others, each with its neighbours."""
    mine = place.get(file)
    near = [mine + step for step in (-64, -8, -4, -1, 1, 8)] + [2 * mine, mine // 2, place.largest, place.largest - 1]
    return sorted({value & place.largest for value in [*_bounds(file), *near]} - {mine})


def changed(rng: random.Random, file: bytes) -> tuple[str, bytes]:
    """``file`` with a flaw, and what kind of flaw that is."""
    kind = rng.choice(["field", "field", "fields", "port", "port", "bytes", "cut", "moved", "job"])
    new = bytearray(file)
    if kind == "field":
        _put_any(rng, new, file, 1)
    elif kind == "fields":
        _put_any(rng, new, file, rng.randrange(2, 6))
    elif kind == "port":
        _change_port(rng, new, file)
    elif kind == "bytes":
        for _ in range(rng.randrange(1, 30)):
            new[rng.randrange(len(new))] = rng.randrange(256)
    elif kind == "cut":
        _cut(rng, new)
    elif kind == "moved":
        _move_table(rng, new, file)
    else:
        _break_job(rng, new, file)
    return kind, bytes(new)


def _put_any(rng: random.Random, new: bytearray, file: bytes, count: int) -> None:
    """As many fields of the header as of ports, jobs and relocations, though there are more of those."""
    known = places(file)
    for _ in range(count):
        record = rng.choice(sorted({place.record for place in known}))
        place = rng.choice([place for place in known if place.record == record])
        place.put(new, rng.choice(values(file, place)))


def _change_port(rng: random.Random, new: bytearray, file: bytes) -> None:
    """Numbers of a port and of its segment that fit together, but for one of them."""
    at = rng.choice([place.at for place in places(file) if (place.record, place.member) == (PORT.name, "name")])
    port = PORT.unpack(file[at : at + PORT.size])
    stored, axes = rng.randrange(5), rng.randrange(9)
    extents = [rng.choice([1, 1, 2, 3, 5, rng.randrange(1, 300)]) for _ in range(axes)]
    elements = 1
    for axis, extent in reversed(list(enumerate(extents))):
        port[f"extent{axis}"], port[f"stride{axis}"] = extent, elements
        elements = min(elements * extent, 0xFFFF_FFFF)
    size = min(elements * (1, 1, 4, 4, 8)[stored], 0xFFFF_FFFF)
    port |= {
        "stored": stored,
        "given": rng.choice([stored, stored, rng.randrange(5)]),
        "quantise": 0,
        "axes": axes,
        "elements": elements,
        "bytes": size,
    }
    if stored < 3 and rng.randrange(2):  # int32 cannot be
        port |= {"quantise": 1, "given": 3, "zero_point": rng.choice([0, 5, 127, 128, 255, -128 & 0xFFFF_FFFF])}
    segment = port["segment"] = rng.randrange(2, 6)
    for name in rng.sample(sorted(port), rng.choice([0, 0, 1, 2])):
        place = next(p for p in places(file) if p.at >= at and p.member == name and p.record == PORT.name)
        port[name] = rng.choice(values(file, place))
    new[at : at + PORT.size] = PORT.pack(**port)
    if rng.randrange(3):
        room = min(size + rng.choice([0, 0, 1, -1, 64, port["offset"]]), 0xFFFF_FFFF)
        struct.pack_into("<I", new, HEADER[f"size{segment}"].offset, max(0, room))


def _cut(rng: random.Random, new: bytearray) -> None:
    """Shorter or longer, and perhaps true to its header."""
    if rng.randrange(4):
        short = [rng.randrange(HEADER.size), HEADER.size - 1, HEADER.size]
        del new[rng.choice([rng.randrange(len(new)), len(new) - 1, len(new) - rng.randrange(1, 64), *short]) :]
    else:
        new += bytes(rng.randrange(1, 300))
    if len(new) >= HEADER.size and rng.randrange(2):
        struct.pack_into("<I", new, HEADER["bytes"].offset, len(new))


def _move_table(rng: random.Random, new: bytearray, file: bytes) -> None:
    """A table, the code or the weights begin elsewhere, on top of others or at the very end."""
    name = rng.choice(["job_table", "port_table", "relocation_table", "code", "weights"])
    at = rng.choice([rng.randrange(0, len(file), 8), len(file) // 8 * 8, len(file) - 64 & ~7, rng.randrange(len(file))])
    struct.pack_into("<I", new, HEADER[name].offset, at)
    if name == "relocation_table" and rng.randrange(2):
        count = rng.choice([1, 3, (len(file) - at) // RELOCATION.size])
        struct.pack_into("<I", new, HEADER["relocations"].offset, max(0, count))


def _break_job(rng: random.Random, new: bytearray, file: bytes) -> None:
    """A job that faults, or nobody hears of, or with flags and numbers at random."""
    header = HEADER.unpack(file[: HEADER.size])
    number = rng.randrange(header["jobs"])
    at = header["job_table"] + number * JOB.size
    job = JOB.unpack(file[at : at + JOB.size])
    choice = rng.randrange(4)
    if choice == 0:
        new[header["code"] + job["body_pc"] * INSN_BYTES] = 0xEE  # no opcode
    elif choice == 1:
        job["flags"] &= ~2
    else:
        job["flags"] = rng.randrange(64)
        segment = rng.randrange(8)
        job[f"limit{segment}"] = max(0, job[f"limit{segment}"] + rng.choice([-64, -1, 0, 1, 64, 4096, 1 << 20]))
    new[at : at + JOB.size] = JOB.pack(**job)
