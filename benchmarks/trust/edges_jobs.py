"""Edges of jobs: opcodes, reserved bits, semaphores, prologues, the end of the code, cycle limits, descriptors."""

from collections.abc import Iterator, Mapping

from benchmarks.trust.edges_case import END, WELL, WRAP, EdgeCase, Ending, executor, one
from benchmarks.trust.words import raw_word, with_bits
from hw.contract.isa import FORMATS, Op
from hw.contract.job import JOB_MAGIC, SEMAPHORES, Fault, FaultUnit
from hw.contract.params import SocParams

_COUNTS = {
    Op.LD2: ("len", "n2", "n1", "n0"), Op.ST2: ("len", "n2", "n1", "n0"), Op.LD1: ("len", "n2", "n1", "n0"),
    Op.ST1: ("len", "n2", "n1", "n0"), Op.LD0: ("len", "n2", "n1", "n0"), Op.MAC: ("n2", "n1", "n0", "p1", "p0"),
    Op.VEC: ("n2", "n1", "n0", "k1", "k0"),
}  # fmt: skip
_LEGAL: dict[Op, dict[str, int]] = {
    Op.END: {}, Op.CANCEL: {"point": 7}, Op.LD2: {"src_seg": 1, "dst_seg": 6}, Op.ST2: {"src_seg": 6, "dst_seg": 4},
    Op.LD1: {"src_seg": 7}, Op.ST1: {"dst_seg": 6}, Op.LD0: {"pe_mask": 1}, Op.MAC: {}, Op.VEC: {},
}  # fmt: skip
_DESCRIPTOR = Ending(Fault.DESCRIPTOR, FaultUnit.RING)
_LOAD = raw_word(Op.LD2, {"src_seg": 1, "dst_seg": 6, "len": 16, "hi": 16, "hi1": 1, "hi0": 1})


def jobs(params: SocParams, sizes: list[int]) -> Iterator[EdgeCase]:
    """``sizes``: of the segments of the job."""
    yield from _words()
    yield from _masks(params)
    yield from _semaphores(params)
    yield from _prologues(params, sizes)
    yield from _code()
    yield from _cycles()
    yield from _descriptors(params)


def _words() -> Iterator[EdgeCase]:
    illegal = executor(Fault.ILLEGAL)
    for number in range(256):
        if number not in [int(op) for op in Op]:
            word = with_bits(_LOAD, 0, 8, number)
            yield one("opcodes", f"{number:#04x}", word, illegal)
    for op, fields in _LEGAL.items():
        legal = raw_word(op, fields)
        yield one("opcodes", op.name, legal, WELL)
        used = sum(f.width for f in FORMATS[op])
        for bit in (used, used + 1, 511):
            yield one("reserved bits", f"bit {bit} of {op.name}", with_bits(legal, bit, 1, 1), illegal)
        for name in _COUNTS.get(op, ()):
            yield one("counts", f"{op.name}.{name} = 0", raw_word(op, {**fields, name: 0}), illegal)


def _masks(params: SocParams) -> Iterator[EdgeCase]:
    """Semaphores that are not there. One that is there is signalled, and taken again."""
    for op in _COUNTS:
        for number in range(SEMAPHORES):
            there = number < params.semaphores
            signal = raw_word(op, {**_LEGAL[op], "signal": 1 << number})
            wait = raw_word(op, {**_LEGAL[op], "wait": 1 << number})
            what = f"{op.name}, semaphore {number}"
            body = (signal, wait, END)
            yield EdgeCase("masks", what, body, WELL if there else executor(Fault.ILLEGAL))
            if not there:
                yield one("masks", f"{what}, wait", wait, executor(Fault.ILLEGAL))


def _semaphores(params: SocParams) -> Iterator[EdgeCase]:
    most = params.semaphore_max
    for number in (0, params.semaphores - 1):
        signal = raw_word(Op.LD2, {**_LEGAL[Op.LD2], "signal": 1 << number})
        wait = raw_word(Op.LD2, {**_LEGAL[Op.LD2], "wait": 1 << number})
        residue = Ending(Fault.SEMAPHORE_RESIDUE, FaultUnit.EXECUTOR)
        yield EdgeCase("semaphores", f"{number} is left", (signal, END), residue)
        if most < 16:
            yield EdgeCase("semaphores", f"{number} up to {most}", (*[signal] * most, *[wait] * most, END), WELL)
            over = Ending(Fault.SEMAPHORE_OVERFLOW, FaultUnit.LD2)
            yield EdgeCase("semaphores", f"{number} up to {most + 1}", (*[signal] * (most + 1), END), over)


def _prologues(params: SocParams, sizes: list[int]) -> Iterator[EdgeCase]:
    def case(what: str, word: bytes, ending: Ending) -> EdgeCase:
        return EdgeCase("prologues", what, (END,), ending, (word, END))

    illegal = Ending(Fault.ILLEGAL, FaultUnit.LOADER, 0, 0)
    for op, fields in _LEGAL.items():
        if op is not Op.END:
            yield case(op.name, raw_word(op, fields), WELL if op is Op.LD2 else illegal)
    for number in range(SEMAPHORES):
        for name in ("wait", "signal"):
            yield case(f"{name} {number}", raw_word(Op.LD2, {**_LEGAL[Op.LD2], name: 1 << number}), illegal)
    for name in _COUNTS[Op.LD2]:
        yield case(f"{name} = 0", raw_word(Op.LD2, {**_LEGAL[Op.LD2], name: 0}), illegal)
    full = {"hi": 0xFFFF, "hi1": 1, "hi0": 1, "len": 24}
    for source in range(8):
        for destination in range(8):
            legal = source < 6 <= destination
            word = raw_word(Op.LD2, {"src_seg": source, "dst_seg": destination, **full})
            yield case(f"from {source} to {destination}", word, WELL if legal else illegal)
            for by in (0, 1) if legal else ():
                beyond = Ending(Fault.LIMIT, FaultUnit.LD2, 0) if by else WELL
                fields = {"src_seg": source, "dst_seg": destination, **full}
                at = {"dst": sizes[destination] - 24 + by}
                yield case(f"from {source} to the end of {destination} {by:+}", raw_word(Op.LD2, fields | at), beyond)
                at = {"src": sizes[source] - 24 + by}
                yield case(f"from the end of {source} {by:+} to {destination}", raw_word(Op.LD2, fields | at), beyond)
    for by in (-1, 0, 1, 2):
        fields = {"prologue_pc": 2 + by, "body_pc": 0, "flags": 1, "limit0": 3 * 64}
        beyond = Ending(Fault.LIMIT, FaultUnit.LOADER, 2 + by if by > 0 else 3)
        ending = Ending(Fault.ILLEGAL, FaultUnit.LOADER, 2) if by <= 0 else beyond
        yield EdgeCase("prologues", f"at {2 + by} of 3", (END, _LOAD, raw_word(Op.ST2, _LEGAL[Op.ST2]), END), ending,
                       (), fields)  # fmt: skip
    fields = {"prologue_pc": 1, "body_pc": 0, "flags": 1, "limit0": 2 * 64}
    yield EdgeCase("prologues", "without END", (END, _LOAD, END), Ending(Fault.LIMIT, FaultUnit.LOADER, 2), (), fields)


def _code() -> Iterator[EdgeCase]:
    """The end of the code, behind which there is more of what would be legal."""
    for count in (1, 2, 3, 7):
        body = (*[_LOAD] * count, END)
        for by in (0, 64):
            limit = {"limit0": 64 * count + by}
            ending = WELL if by else executor(Fault.LIMIT, count)
            yield EdgeCase("code", f"{count} instructions, limit {limit['limit0']}", body, ending, (), limit)
        for pc in (count, count + 1, (1 << 24) - 1):
            fields = {"limit0": 64 * (count + 1), "body_pc": pc}
            ending = WELL if pc == count else executor(Fault.LIMIT, pc)
            ending = ending if pc < 1 << 23 else Ending(Fault.LIMIT, FaultUnit.EXECUTOR, pc)
            yield EdgeCase("code", f"body at {pc} of {count + 1}", body, ending, (), fields)


def _cycles() -> Iterator[EdgeCase]:
    """The body takes a few hundred cycles."""
    load = raw_word(Op.LD2, {"src_seg": 1, "dst_seg": 6, "len": 1024, "hi": 1024, "hi1": 1, "hi0": 1, "n0": 1})
    for limit in (*range(1, 33), 63, 64, 65, 100):
        ending = Ending(Fault.CYCLE_LIMIT, FaultUnit.EXECUTOR)
        yield EdgeCase("cycles", f"limit {limit}", (load, load, END), ending, (), {"cycle_limit": limit})
    for limit in (0, 100_000, WRAP - 1):
        yield EdgeCase("cycles", f"limit {limit}", (load, load, END), WELL, (), {"cycle_limit": limit})


def _descriptors(params: SocParams) -> Iterator[EdgeCase]:
    def case(what: str, fields: Mapping[str, int], legal: bool) -> EdgeCase:
        return EdgeCase("descriptors", what, (END,), WELL if legal else _DESCRIPTOR, (), fields)

    for bit in range(16):
        yield case(f"magic, bit {bit}", {"magic": JOB_MAGIC ^ 1 << bit}, False)
        if bit >= 7:
            yield case(f"flags, bit {bit}", {"flags": 1 << bit}, False)
    for bit in range(24, 32):
        yield case(f"body_pc, bit {bit}", {"body_pc": 1 << bit}, False)
        yield case(f"prologue_pc, bit {bit}", {"prologue_pc": 1 << bit}, False)
    for name in ("wait0_id", "wait1_id", "signal_id"):
        for event in (*range(params.events - 2, params.events + 3), 2 * params.events, 128, 255):
            yield case(f"{name} {event}", {name: event}, event < params.events)
    for number in range(SEMAPHORES):
        most = params.semaphore_max if number < params.semaphores else 0
        for count in {0, 1, most, most + 1, 255} & set(range(256)):
            yield case(f"sem{number} {count}", {f"sem{number}": count}, count <= most)
    for low in range(6):
        yield case(f"base0 + {1 << low}", {"base0": 0x2000 + (1 << low)}, False)
    for i in range(8):
        for bit in (32, 33, 40, 48, 62, 63):
            yield case(f"base{i}, bit {bit}", {f"base{i}": 1 << bit}, False)
        size = params.lv2_bytes if i in (6, 7) else WRAP
        for base in (0, 64, size - 64) if i else ():
            for by in (-1, 0, 1):
                limit = size - base + by
                if limit < WRAP:
                    legal = base + limit <= size
                    yield case(
                        f"segment {i} from {base:#x} on, end {by:+}", {f"base{i}": base, f"limit{i}": limit}, legal
                    )
        if i in (6, 7):
            for base, limit in ((size, 0), (size, 1), (size + 1, 0), (0, WRAP - 1), (WRAP - 64, 64), (WRAP - 64, 65)):
                legal = base + limit <= size
                yield case(
                    f"segment {i} from {base:#x}, {limit:#x} bytes", {f"base{i}": base, f"limit{i}": limit}, legal
                )
        elif i:
            yield case(f"segment {i} around the end", {f"base{i}": WRAP - 1, f"limit{i}": 2}, False)
            yield case(f"segment {i} far around the end", {f"base{i}": WRAP - 1, f"limit{i}": WRAP - 1}, False)
