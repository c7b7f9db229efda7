"""What the driver in C must say to a flat file, by rules written by hand: only the layout of records is taken from the
contract."""

import math
import struct
from collections import Counter

from hw.contract.job import JOB
from hw.contract.layout import Record
from hw.image import HEADER, PORT, RELOCATION

_MAGIC, _VERSION, _JOB_MAGIC, _FLAGS = 0x46414543, 1, 0xCA5E, 31
_PAGE, _DRAM, _ENGINES = 4096, 1 << 20, 2  #: of the device that is not there
_BYTES = (1, 1, 4, 4, 8)  #: of an element
_SMALLEST = (-128, 0)  #: of what can be quantised
REFUSED, OTHER, FULL, LOADED = "refused", "other hardware", "no memory", "ok"


def verdict(file: bytes, params: int) -> str:
    """How a load of ``file`` has to end, where register PARAMS reads ``params`` and nothing else is loaded."""
    if not _sound(file):
        return REFUSED
    header = HEADER.unpack(file[: HEADER.size])
    if header["params"] != params or header["engines"] > _ENGINES:
        return OTHER
    at = _PAGE + _ENGINES * 2 * 64 * 256  # behind the rings
    for segment in range(6):
        if size := header[f"size{segment}"]:
            at = -(-at // _PAGE) * _PAGE + size
            if at > _DRAM:
                return FULL
    return LOADED


def _sound(file: bytes) -> bool:
    if len(file) < 192 or file[-1]:
        return False
    header = HEADER.unpack(file[: HEADER.size])
    ports = header["inputs"] + header["outputs"]
    known = (header["magic"], header["version"], header["bytes"]) == (_MAGIC, _VERSION, len(file))
    if not known or header["engines"] > 16 or header["events"] > 64 or not _inside(file, header):
        return False
    jobs = _records(file, JOB, header["job_table"], header["jobs"])
    relocations = _records(file, RELOCATION, header["relocation_table"], header["relocations"])
    return (
        _sound_jobs(jobs, header)
        and all(_sound_relocation(entry, header) for entry in relocations)
        and all(_sound_port(port, header) for port in _records(file, PORT, header["port_table"], ports))
    )


def _inside(file: bytes, header: dict[str, int]) -> bool:
    ports = header["inputs"] + header["outputs"]
    parts = [
        (header["job_table"], 256 * header["jobs"]), (header["port_table"], 128 * ports),
        (header["relocation_table"], 16 * header["relocations"]), (header["code"], header["code_bytes"]),
        (header["weights"], header["weight_bytes"]),
    ]  # fmt: skip
    return (
        all(at % 8 == 0 and at + size <= len(file) for at, size in parts)
        and header["code_bytes"] % 64 == 0
        and header["code_bytes"] <= header["size0"]
        and header["weight_bytes"] <= header["size1"]
        and all(header[f"lv2_at{i}"] + header[f"size{i}"] <= header["lv2_bytes"] for i in (6, 7))
    )


def _records(file: bytes, record: Record, at: int, count: int) -> list[dict[str, int]]:
    return [record.unpack(file[at + i * record.size : at + (i + 1) * record.size]) for i in range(count)]


def _sound_jobs(jobs: list[dict[str, int]], header: dict[str, int]) -> bool:
    before: Counter[int] = Counter()
    for number, job in enumerate(jobs):
        engine, flags = job["tag"] >> 16, job["flags"]
        used = [job[name] for name, flag in (("wait0_id", 4), ("wait1_id", 8), ("signal_id", 16)) if flags & flag]
        entries = [job["body_pc"], job["prologue_pc"] if flags & 1 else 0]
        if (
            (job["magic"], job["job_id"]) != (_JOB_MAGIC, number)
            or flags & ~_FLAGS
            or engine >= header["engines"]
            or job["window_after"] > before[engine]
            or max(entries) >= header["code_bytes"] // 64
            or any(event >= header["events"] for event in used)
            or any(job[f"limit{i}"] > header[f"size{i}"] for i in range(8))
        ):
            return False
        before[engine] += 1
    return True


def _sound_relocation(entry: dict[str, int], header: dict[str, int]) -> bool:
    byte, segment = entry["byte"], entry["segment"]
    fits = byte % 4 == 0 and byte + 8 <= header["code_bytes"]
    return fits and entry["low"] < 32 and 1 <= entry["width"] <= 32 and segment < 8


def _sound_port(port: dict[str, int], header: dict[str, int]) -> bool:
    if port["name"] >= header["bytes"] or not 2 <= port["segment"] <= 5 or port["stored"] > 4 or port["axes"] > 8:
        return False
    extents = [port[f"extent{axis}"] for axis in range(port["axes"])]
    reach = sum((extent - 1) * port[f"stride{axis}"] for axis, extent in enumerate(extents))
    elements, size = math.prod(extents), math.prod(extents) * _BYTES[port["stored"]]
    return (
        0 not in extents
        and reach < elements == port["elements"]
        and size == port["bytes"]
        and port["offset"] + size <= header[f"size{port['segment']}"]
        and _sound_types(port)
    )


def _sound_types(port: dict[str, int]) -> bool:
    if port["quantise"] == 0:
        return port["given"] == port["stored"]
    (scale,) = struct.unpack("<f", struct.pack("<I", port["scale"]))
    (zero_point,) = struct.unpack("<i", struct.pack("<I", port["zero_point"]))
    if port["quantise"] > 1 or port["stored"] > 1 or port["given"] != 3 or not 0 < scale < math.inf:
        return False
    return 0 <= zero_point - _SMALLEST[port["stored"]] < 256
