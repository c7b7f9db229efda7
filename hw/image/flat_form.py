"""The flat form of an image is for drivers that have no JSON: records of fixed size, in one file, little endian.

A file begins with the header. Tables, code, weights and names lie where the header says, at multiples of 64 bytes.
Descriptors of jobs are complete but for the first bytes of segments and the numbers of events: a driver adds the base
of each segment, the first of its events to ``signal_id`` and the wait ids, and what an event counted before the
inference to the wait values. ``tag`` of a descriptor is ``engine << 16 | job``. Then the fields that the relocations
name get the base of a segment. Images with steps on the CPU have no flat form, nor those that a run time places or
whose jobs have parameters.

A driver that does not trust the file refuses it unless the tables, the code and the weights lie within it; job ``n``
of the table has number ``n``, an engine and events below those of the header, entry points within the code and limits
no larger than the sizes of the segments; and each port lies within its segment, with strides that do not lead out of
it and types between which it can convert. ``given`` is ``stored`` unless ``quantise`` is 1.
"""

import math
import struct

import numpy as np

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS, Insn, field_place
from hw.contract.job import JOB, JOB_MAGIC, JobFlag
from hw.contract.layout import Record, consecutive
from hw.image.image import Image, ImageError, PortInfo

FLAT_MAGIC = 0x4641_4543  # "CEAF"
FLAT_VERSION = 1
ALIGN = 64
MOST_AXES = 8
DTYPES = ("int8", "uint8", "int32", "float32", "int64")  #: by number

HEADER = Record(
    "flat_header", 192,
    (
        *consecutive(0, 4, (
            ("magic", "`FLAT_MAGIC`"),
            ("version", "`FLAT_VERSION`"),
            ("params", "what register PARAMS must read"),
            ("bytes", "of the whole file"),
            ("engines", "that the jobs name, from 0 on"),
            ("events", "that the jobs name, from 0 on"),
            ("inputs", "number of inputs, the first of the ports"),
            ("outputs", "number of outputs, which follow"),
            ("jobs", "number of jobs"),
            ("relocations", "number of relocations"),
            ("job_table", "byte of the file where job descriptors begin"),
            ("port_table", "the same for ports"),
            ("relocation_table", "the same for relocations"),
            ("code", "the same for the content of segment 0"),
            ("weights", "the same for the content of segment 1"),
            ("code_bytes", "bytes of it"),
            ("weight_bytes", "bytes of it"),
            ("lv2_bytes", "of LV2 that segments 6 and 7 take together"),
        )),
        *consecutive(128, 4, ((f"size{i}", f"bytes of segment {i}") for i in range(SEGMENTS))),
        *consecutive(160, 4, ((f"lv2_at{i}", f"where segment {i} begins in the model's part of LV2")
                              for i in LV2_SEGMENTS)),
    ),
)  # fmt: skip

PORT = Record(
    "flat_port", 128,
    (
        *consecutive(0, 4, (
            ("name", "byte of the file where its name begins, UTF-8 that ends with a zero"),
            ("segment", "2 to 5"),
            ("offset", "first byte in the segment"),
            ("bytes", "of it there"),
            ("elements", "number of elements"),
            ("stored", "type there: number of it in int8, uint8, int32, float32, int64"),
            ("given", "type that the user sees, likewise"),
            ("quantise", "1: the user sees `scale * (stored - zero_point)` as float32, and inputs are rounded half to "
                         "even and saturated"),
            ("scale", "bits of a float32"),
            ("zero_point", "two's complement"),
            ("axes", "number of axes of the user's array"),
        )),
        *consecutive(48, 4, ((f"extent{i}", f"elements along axis {i} of the user's array") for i in range(MOST_AXES))),
        *consecutive(80, 4, ((f"stride{i}", f"elements from one to the next along axis {i}, where it is stored")
                             for i in range(MOST_AXES))),
    ),
)  # fmt: skip

RELOCATION = Record(
    "flat_relocation", 16,
    consecutive(0, 4, (
        ("byte", "of segment 0, a multiple of 4: where the word with the field begins"),
        ("low", "bit of the field in that little-endian 64-bit word"),
        ("width", "bits of the field"),
        ("segment", "whose first byte is added to the field"),
    )),
)  # fmt: skip


def flat(image: Image) -> bytes:
    """Return the flat form of ``image``. Raises :class:`ImageError` for an image that has none."""
    meta = image.meta
    reasons = {
        "its layers are placed by a run time": meta.parts,
        "its jobs have parameters": meta.parameters,
        "it has steps that run on the CPU": any(step.kind != "jobs" for step in meta.steps),
    }
    for why in (reason for reason, applies in reasons.items() if applies):
        raise ImageError(f"image {meta.model!r} has no flat form: {why}")
    ports = [*meta.inputs, *meta.outputs]
    tables = {
        "job_table": b"".join(_jobs(image)),
        "relocation_table": b"".join(_relocations(image)),
        "code": image.code,
        "weights": image.weights,
    }
    at, end = {}, -(-(HEADER.size + len(ports) * PORT.size) // ALIGN) * ALIGN
    body = b""
    for name, raw in tables.items():
        at[name] = end + len(body)
        body += raw + bytes(-len(raw) % ALIGN)
    names, listed = b"", b""
    for port in ports:
        listed += _port(image, port, end + len(body) + len(names), output=port in meta.outputs)
        names += port.name.encode() + b"\0"
    first, _ = (meta.segment_sizes[i] for i in LV2_SEGMENTS)
    word = image.params.lv1_word
    beside = 0 if meta.overlaid else -(-first // word) * word
    header = HEADER.pack(
        magic=FLAT_MAGIC, version=FLAT_VERSION, params=int(image.params.digest()[:8], 16),
        bytes=end + len(body) + len(names), engines=max(job.engine for job in meta.jobs) + 1, events=meta.events,
        inputs=len(meta.inputs), outputs=len(meta.outputs), jobs=len(meta.jobs), relocations=len(meta.relocations),
        port_table=HEADER.size, code_bytes=len(image.code), weight_bytes=len(image.weights),
        lv2_bytes=beside + meta.segment_sizes[7], lv2_at6=0, lv2_at7=beside, **at,
        **{f"size{i}": size for i, size in enumerate(meta.segment_sizes)},
    )  # fmt: skip
    tables_end = header + listed
    return tables_end + bytes(end - len(tables_end)) + body + names


def _jobs(image: Image) -> list[bytes]:
    """Return the descriptors in the order of submission. The last one of each engine interrupts."""
    jobs, made = image.meta.jobs, []
    last = {job.engine: number for number, job in enumerate(jobs)}
    before = dict.fromkeys(last, 0)
    for number, job in enumerate(jobs):
        flags = JobFlag.INTERRUPT if last[job.engine] == number else JobFlag(0)
        members = {"body_pc": job.body_pc, "job_id": number, "tag": job.engine << 16 | number & 0xFFFF}
        if job.window_after <= before[job.engine]:  # what was further back belonged to the inference before
            members["window_after"] = job.window_after
        before[job.engine] += 1
        for i, (event, times) in enumerate(job.waits):
            members[f"wait{i}_id"], members[f"wait{i}_value"] = event, times
            flags |= (JobFlag.WAIT0, JobFlag.WAIT1)[i]
        if job.signal is not None:
            members["signal_id"] = job.signal
            flags |= JobFlag.SIGNAL
        if job.prologue_pc is not None:
            members["prologue_pc"] = job.prologue_pc
            flags |= JobFlag.PROLOGUE
        limits = {f"limit{i}": size for i, size in enumerate(image.meta.segment_sizes)}
        made.append(JOB.pack(magic=JOB_MAGIC, flags=int(flags), **members, **limits))
    return made


def _relocations(image: Image) -> list[bytes]:
    made = []
    for entry in image.meta.relocations:
        insn = Insn.decode(image.code[entry.pc * INSN_BYTES : (entry.pc + 1) * INSN_BYTES])
        low, width = field_place(insn.op, entry.field)
        made.append(
            RELOCATION.pack(
                byte=entry.pc * INSN_BYTES + low // 32 * 4, low=low % 32, width=width,
                segment=int(entry.symbol.removeprefix("segment")),
            )
        )  # fmt: skip
    return made


def _port(image: Image, port: PortInfo, name: int, *, output: bool) -> bytes:
    """Return the record of an input or output. An input is transposed before it is stored, an output after it was
    read."""
    tensor = image.tensor(port.tensor)
    perm = port.perm or list(range(len(tensor.shape if output else port.shape)))
    if len(perm) > MOST_AXES:
        raise ImageError(f"image {image.meta.model!r} has no flat form: {port.name!r} has more than {MOST_AXES} axes")
    if output:
        stored = tensor.shape
        extents = [stored[axis] for axis in perm]
        strides = [math.prod(stored[axis + 1 :]) for axis in perm]
    else:
        extents, strides = port.shape, [0] * len(perm)
        for place, axis in enumerate(perm):
            strides[axis] = math.prod(port.shape[later] for later in perm[place + 1 :])
    wanted = "float32" if port.quantise else tensor.dtype
    if port.dtype != wanted:
        raise ImageError(f"image {image.meta.model!r} has no flat form: {port.name!r} is {port.dtype}, not {wanted}")
    elements = math.prod(tensor.shape)
    return PORT.pack(
        name=name, segment=tensor.segment, offset=tensor.offset, elements=elements,
        bytes=elements * np.dtype(tensor.dtype).itemsize, stored=DTYPES.index(tensor.dtype),
        given=DTYPES.index(port.dtype), quantise=int(port.quantise),
        scale=int.from_bytes(struct.pack("<f", tensor.scale), "little"), zero_point=tensor.zero_point & 0xFFFF_FFFF,
        axes=len(perm), **{f"extent{i}": extent for i, extent in enumerate(extents)},
        **{f"stride{i}": stride for i, stride in enumerate(strides)},
    )  # fmt: skip
