"""Flat files with one number at the edge of what it may be."""

from collections.abc import Iterator
from functools import cache

from benchmarks.trust.flat_files import FlatMember, places
from hw.contract.job import JOB
from hw.image import HEADER, MOST_AXES, PORT, RELOCATION

_STEPS = (-8, -4, -1, 0, 1, 4, 8)
_OFTEN = 4  #: times that an edge of several fields stands in the list, beside those of one
_WRAPPING = (64, 5, 107_367_629, 536_903_681)  #: of which the product is 2^64 + 64
_WIDTHS = {2: 4, 3: 4, 4: 8}  #: bytes of the types that have more than one
Numbers = dict[str, int]


@cache
def edges(file: bytes) -> list[tuple[str, bytes]]:
    """What was changed, and the file: every field of ``file`` that has a bound, at it and beside it."""
    header, found = HEADER.unpack(file[: HEADER.size]), []
    for record in _records(file):
        numbers = {name: place.get(file) for name, place in record.items()}
        bounds = _BOUNDS[next(iter(record.values())).record]
        for name, bound in bounds(header, numbers):
            for value in sorted({*(bound + step for step in _STEPS), record[name].largest}):
                new = bytearray(file)
                record[name].put(new, value)
                found.append((f"{record[name].record}.{name} = {value}", bytes(new)))
    return found + [each for each in _together(file) for _ in range(_OFTEN)]


def _together(file: bytes) -> Iterator[tuple[str, bytes]]:
    """What only one check refuses, since several fields agree on it."""
    header = {place.member: place for place in places(file) if place.record == HEADER.name}
    for size in (HEADER["bytes"].offset + HEADER["bytes"].size, HEADER.size // 2, HEADER.size - 8, HEADER.size - 1):
        new = bytearray(file[:size])
        header["bytes"].put(new, size)
        yield f"a header of {size} bytes that says so", bytes(new)
    for segment, needed in ((0, "code_bytes"), (1, "weight_bytes")):
        new, less = bytearray(file), header[needed].get(file) - 1
        header[f"size{segment}"].put(new, less)
        for limit in (place for place in places(file) if place.member == f"limit{segment}"):
            limit.put(new, min(limit.get(file), less))
        yield f"{needed} beyond size{segment}, and jobs within it", bytes(new)
    for port in _records(file):
        if "elements" in port:
            new = bytearray(file)
            header[f"size{port['segment'].get(file)}"].put(new, 1 << 16)
            stored = _WIDTHS.get(port["stored"].get(file), 1)
            for name, value in (("axes", len(_WRAPPING)), ("elements", 64), ("bytes", 64 * stored), ("offset", 0)):
                port[name].put(new, value)
            for axis, extent in enumerate(_WRAPPING):
                port[f"extent{axis}"].put(new, extent)
                port[f"stride{axis}"].put(new, 0)
            yield "extents whose product is 2^64 more than the elements", bytes(new)
            new = bytearray(file)
            port["axes"].put(new, MOST_AXES + 1)  # the next is the first stride
            for axis in range(MOST_AXES):
                port[f"extent{axis}"].put(new, 1 if axis else port["elements"].get(file))
                port[f"stride{axis}"].put(new, 0 if axis else 1)
            yield "an axis more than there may be, of one element", bytes(new)


def _records(file: bytes) -> list[dict[str, FlatMember]]:
    """The header and all ports, of jobs and relocations the first and the last: fields by name."""
    whole: dict[tuple[str, int], dict[str, FlatMember]] = {}
    number = -1
    for place in places(file):
        number += place.member in ("magic", "name", "byte")  # the first of a record
        whole.setdefault((place.record, number), {})[place.member] = place
    records = list(whole.values())
    many = {JOB.name, RELOCATION.name}
    of = [next(iter(record.values())).record for record in records]
    return [
        record
        for i, record in enumerate(records)
        if of[i] not in many or of[i] not in of[:i] or of[i] not in of[i + 1 :]
    ]


def _of_header(header: Numbers, numbers: Numbers) -> Iterator[tuple[str, int]]:
    yield from ((name, header[name]) for name in ("magic", "version", "bytes", "code_bytes", "weight_bytes"))
    yield from (("engines", 2), ("engines", 16), ("events", header["events"]), ("events", 64))
    ports = header["inputs"] + header["outputs"]
    sizes = {
        "job_table": 256 * header["jobs"], "port_table": 128 * ports, "relocation_table": 16 * header["relocations"],
        "code": header["code_bytes"], "weights": header["weight_bytes"],
    }  # fmt: skip
    yield from ((name, header["bytes"] - size) for name, size in sizes.items())
    counts = {"jobs": "job_table", "inputs": "port_table", "outputs": "port_table", "relocations": "relocation_table"}
    yield from ((name, header[name]) for name in counts)
    yield from ((name, (header["bytes"] - header[table]) // 16) for name, table in counts.items())
    yield from (("size0", header["code_bytes"]), ("size1", header["weight_bytes"]))
    yield from ((f"size{i}", header[f"size{i}"]) for i in range(8))
    yield from ((f"lv2_at{i}", header["lv2_bytes"] - header[f"size{i}"]) for i in (6, 7))
    yield "lv2_bytes", header["lv2_bytes"]


def _of_port(header: Numbers, port: Numbers) -> Iterator[tuple[str, int]]:
    yield from (("name", header["bytes"]), ("segment", 2), ("segment", 5), ("stored", 4), ("given", 4), ("axes", 8))
    yield from (("quantise", 1), ("scale", 0), ("scale", 0x7F80_0000), ("scale", 0x8000_0000))
    yield from (("zero_point", edge & 0xFFFF_FFFF) for edge in (-128, 127, 0, 255, -(1 << 31)))
    yield "offset", header[f"size{port['segment']}"] - port["bytes"]
    yield from ((name, port[name]) for name in ("bytes", "elements"))
    for axis in range(port["axes"]):
        yield from ((f"{kind}{axis}", port[f"{kind}{axis}"]) for kind in ("extent", "stride"))


def _of_job(header: Numbers, job: Numbers) -> Iterator[tuple[str, int]]:
    yield from ((name, job[name]) for name in ("magic", "job_id", "window_after"))
    yield from (("flags", 1 << bit) for bit in range(6))
    yield from ((name, header["code_bytes"] // 64) for name in ("body_pc", "prologue_pc"))
    yield from ((name, header["events"]) for name in ("wait0_id", "wait1_id", "signal_id"))
    yield "tag", header["engines"] << 16
    yield from ((f"limit{i}", header[f"size{i}"]) for i in range(8))


def _of_relocation(header: Numbers, entry: Numbers) -> Iterator[tuple[str, int]]:
    yield from (("byte", header["code_bytes"] - 8), ("low", 31), ("width", 32), ("width", 1), ("segment", 7))


_BOUNDS = {HEADER.name: _of_header, PORT.name: _of_port, JOB.name: _of_job, RELOCATION.name: _of_relocation}
