"""What the rounds of a plain run of a campaign must have reached, and how often: below it the run has shown nothing."""

from itertools import product

_CRAFTS = (
    "in little LV2", "with weights that stay", "in all of LV2", "without points", "on two engines", "placed",
    "with a step on the CPU", "with long bodies",
)  # fmt: skip
_FAULTS = ("illegal", "limit", "stuck", "endless", "residue")

STORMS = {
    "neighbour started over": 10, "blamed one is not the oldest": 2, "prologue left out": 10, "event wait": 150,
    "window after an earlier job": 150, "memories cleared": 100, "unloading refused": 100, "deadline missed": 30,
    "deadline missed alone": 3, "cancelled": 10, "suspended": 10, "resumed job": 5, "reload list": 5, "restore": 5,
    "dump": 5, "dump of LV1": 3, "dump of accumulators": 2, "fault in the first job": 8, "fault in an inner job": 8,
    "fault in the last job": 8, **{f"exact: {kind}": 15 for kind in _CRAFTS},
    **{f"fault: {kind}": 3 for kind in _FAULTS},
}  # fmt: skip

LATE = {"too late alone": 100, "too late waiting": 80, "in time": 100, "in time beside one that hangs": 3}

_LIVE = ("lv1", "lv2", "lv0_act", "lv0_wgt", "lv0_acc")
#: Numbers that are refused when they are too small or too large, and accepted otherwise.
_NUMBERS = (
    "segment_sizes", "events", "weights_only", "tensors.offset", "tensors.segment", "tensors.shape",
    "tensors.zero_point", "tensors.scale", "ports.shape", "layers.work", "layers.cycles", "jobs.layer", "jobs.engine",
    "jobs.body_pc", "jobs.prologue_pc", "jobs.window_after", "jobs.worst_cycles", "jobs.window begin",
    "jobs.window size", "jobs.waits event", "jobs.waits times", "jobs.signal", "jobs.live lv2 offset",
    "jobs.live lv2 size", "jobs.live source_offset", "steps.first", "steps.count", "points.pc", "points.job",
    "points.reload", "points.reload length", "points.semaphores number", "points.semaphores count",
    "points.estimated_interval", "points.worst_interval", "relocations.pc",
    *(f"points.live {space} {what}" for space, what in product(_LIVE, ("offset", "size"))),
    "points.live segment", "points.live source_offset", "points.live source_segment", "code: mask of PEs",
    "code: number of a CANCEL", "code: a write near weights that stay", "code: a load of a prologue",
)  # fmt: skip

IMAGES = {
    **{f"{verdict}: {name}": 3 for name in _NUMBERS for verdict in ("accepted", "refused")},
    "refused: points.last": 3, "refused: host_sizes": 3, "ran well": 20, "suspended": 20, "dump": 20, "restore": 20,
}  # fmt: skip

#: Cases of one round of ``edges`` by kind, at least.
EDGES = {
    "segments": 256, "LD2 src": 500, "LD2 dst": 160, "ST2 src": 180, "ST2 dst": 300, "LD1 src": 180, "LD1 dst": 80,
    "ST1 src": 90, "ST1 dst": 160, "LD0 src": 90, "LD0 dst": 400, "LD0 fields": 100, "MAC": 100, "VEC": 200,
    "VEC fields": 240, "opcodes": 256, "reserved bits": 27, "counts": 30, "masks": 224, "semaphores": 2,
    "prologues": 180, "code": 20, "cycles": 35, "descriptors": 280,
}  # fmt: skip

NEIGHBOURS = {
    "reset in mid-flight": 80, "fault in mid-flight": 40, "pause in mid-flight": 50, "error of the memory": 50,
    "error of the completion ring": 100, "window_after": 100, "events": 100,
}  # fmt: skip
#: Endings of programs, at least.
HOSTILE = {"programs": 1_500, "ILLEGAL": 200, "LIMIT": 200, "SEMAPHORE_UNDERFLOW": 50, "NONE": 20, "CYCLE_LIMIT": 5}
DIFFERENTIAL = {"programs": 1_500, "ends well": 500, "LIMIT": 150, "ILLEGAL": 100, "DESCRIPTOR": 20}

RESIDUE = {
    "looks": 150, "looks of one that came back": 20, "DRAM read": 150, "after another": 15, "after an unload": 15,
    "suspended": 20, "reset": 15, "dump of LV1": 20, "dump of accumulators": 10, "reload list": 10, "restore": 20,
    "memories cleared": 200,
}  # fmt: skip

EXCHANGE = {
    "looks": 250, "looks of one that came back": 80, "nested": 8, "DRAM nearly full": 20, "dump": 80,
    "dump of LV1": 60, "dump of accumulators": 40, "reload list": 25, "restore": 60, "resumed job": 60,
    "window after an earlier job": 60, "all of LV2 is live": 15, "weights stayed": 8, "weights of two": 8,
    "dump refused": 8,
}  # fmt: skip

#: Why the driver in C refuses a file.
_PROBLEMS = (
    "it is shorter than a header", "magic", "version", "bytes: it has another size",
    "engines: more than a device can have", "events: more than a device can have", "job_table leaves the file",
    "port_table leaves the file", "relocation_table leaves the file", "code leaves the file", "weights leave the file",
    "code_bytes: half an instruction", "code_bytes: more than segment 0 has", "weight_bytes: more than segment 1 has",
    "segment 6 leaves the model's part of LV2", "segment 7 leaves the model's part of LV2",
    "the last name does not end", "job: magic", "job: flags that no file has", "job: job_id is not its number",
    "job: an engine beyond those of the header", "job: body_pc leaves the code", "job: prologue_pc leaves the code",
    "job: window_after is before the first job", "job: wait0_id is no event", "job: wait1_id is no event",
    "job: signal_id is no event", "job: a limit is beyond the size of its segment", "relocation: byte leaves the code",
    "relocation: byte is within a word", "relocation: low is beyond the first word", "relocation: width",
    "relocation: segment", "port: name leaves the file", "port: segment holds no tensors",
    "port: quantise is neither 0 nor 1", "port: given is another type than stored",
    "port: stored is no type that can be quantised", "port: given is not float32, but quantised",
    "port: scale is no positive number", "port: zero_point is beyond its type", "port: stored is no type", "port: axes",
    "port: an axis without elements", "port: more elements than its segment has bytes",
    "port: strides that lead beyond its elements", "port: elements is not the product of its axes",
    "port: bytes is not the size of its elements", "port: it leaves its segment",
)  # fmt: skip
#: ``run``, and how it ended; that no file or array had memory behind it.
C_DRIVER = {
    "run ok": 2000, "run faulted": 50, "run timed out": 20, "no memory": 50, "other hardware": 50,
    "traps and guard pages": 20_000, **{f"refused {problem}": 1 for problem in _PROBLEMS},
}  # fmt: skip

_MOMENTS = ("dump", "restore", "reload list", "clearing")
FAULTS = {
    **{f"error at a {moment}": 2 for moment in _MOMENTS},
    "error at a prologue": 3, "error at a job": 2, "damaged completion, reported": 1,
    "error of a ring, reported": 1, "error of a segment, reported": 1, "lost interrupts, no effect on results": 3,
    "dump": 30, "restore": 30, "reload list": 30, "memories cleared": 200,
}  # fmt: skip

URGENT = {
    "lies": 60, "all is live": 60, "reload lists": 60, "stuck body": 20, "endless body": 20, "odd windows": 20,
    "odd numbers": 10, "endless prologue": 1, "endless wait": 2, "lower one was suspended": 60, "dump": 20,
    "restore": 20, "reload list": 15,
}  # fmt: skip
