"""Bodies at their places: addresses of weights and numbers of cancellation points become those of the image."""

from compiler.emission.objects.step_object import JobObject
from compiler.emission.preempt.live_bytes import LiveBytes
from compiler.emission.program.address import Anchor, JobAddresses
from hw.contract.isa import INSN_BYTES, Insn, add_to_field
from hw.image import CancelPoint, LiveRange


def relocated(body: JobObject, addresses: JobAddresses, first: int) -> bytes:
    """Return the code of ``body``; ``first``: number of its first point in the image."""
    code = bytearray(body.code)
    for fixup in body.fixups:
        add_to_field(code, fixup.at * INSN_BYTES, fixup.field, _base(fixup.anchor, addresses))
    for ahead, point in enumerate(body.points):
        add_to_field(code, (point.cut + ahead) * INSN_BYTES, "point", first)
    return bytes(code)


def relocated_program(body: JobObject, addresses: JobAddresses) -> list[Insn]:
    """Return the program of ``body`` as far as times depend on it."""
    program = list(body.program)
    for fixup in body.fixups:
        insn = program[fixup.at]
        if fixup.field in insn.fields:
            moved = {fixup.field: insn.fields[fixup.field] + _base(fixup.anchor, addresses)}
            program[fixup.at] = Insn(insn.op, insn.fields | moved)
    return program


def linked_points(
    body: JobObject, addresses: JobAddresses, first: int, job: int, body_pc: int
) -> list[CancelPoint]:  # fmt: skip
    """Return the points of ``body``, which begins at ``body_pc``; ``job``: its number in the image."""
    cuts = {point.cut for point in body.points}
    pcs, pc = list[int](), body_pc
    for number in range(body.tasks):
        pc += number in cuts
        pcs.append(pc)
        pc += 1
    found: dict[int, LiveRange] = {}  # by identity: many points share a range of a buffer that stays for long

    def at(one: LiveBytes) -> LiveRange:
        if id(one) not in found:
            found[id(one)] = one.at(addresses)
        return found[id(one)]

    return [
        CancelPoint(
            point=first + ahead,
            job=job,
            pc=body_pc + point.cut + ahead,
            estimated_interval=point.interval,
            live=[at(one) for one in point.live],
            reload=[pcs[task] for task in point.reload],
            semaphores=point.semaphores,
        )
        for ahead, point in enumerate(body.points)
    ]


def _base(anchor: Anchor, addresses: JobAddresses) -> int:
    base: int = getattr(addresses, anchor.value)
    return base
