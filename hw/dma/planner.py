"""Plans the runs of a copy command: loops, clips, limits, addresses. It makes one run per cycle, without
multipliers."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.data_register import data_register
from hw.dma.layouts import LEN, log2, run_layout
from hw.interfaces import ADDR, COMMAND, FAULT, struct_layout

#: One side of a copy within a memory of its own: from the fields of a command, the size of that memory in bytes.
MemorySize = Callable[[data.View], "int | Value"]
Forbidden = Callable[[data.View], Value]  #: whether the unit cannot do what the fields of a command ask for


class Planner(wiring.Component):
    """Walks the loops of one command at a time and describes each run by a ``run_layout``.

    ``src_size`` and ``dst_size`` give the size of a memory that offsets address directly; None takes base and limit of
    the segment from the command. A run that would read or write beyond a limit is not emitted: the planner reports
    LIMIT with the first such offset (source first) and stops for good. A length or count of zero is ILLEGAL,
    and so is what ``forbidden`` says of the instruction.

    ``tag`` names the fields of a run's tag: instruction fields, ``pc``, ``src`` or ``dst`` (offset of run byte 0).

    Members: ``cmd``: In(stream of COMMAND), ``run``: Out(stream of runs), ``stop``: In, emit nothing more and take no
    command from now on; ``fault``, ``fault_info``: Out, for one cycle; ``extent_valid``, ``extent``: Out, end offset of
    the run emitted this cycle; ``busy``: Out, a command is being planned.
    """

    def __init__(
        self, word_bytes: int, tag: dict, *, src_size: MemorySize | None = None, dst_size: MemorySize | None = None,
        forbidden: Forbidden | None = None,
    ) -> None:  # fmt: skip
        self._word_bytes = word_bytes
        self._tag = tag
        self._src_size = src_size
        self._dst_size = dst_size
        self._forbidden = forbidden
        super().__init__(
            {
                "cmd": In(stream.Signature(COMMAND)),
                "run": Out(stream.Signature(run_layout(word_bytes, tag))),
                "stop": In(1),
                "fault": Out(1),
                "fault_info": Out(FAULT),
                "extent": Out(ADDR),
                "extent_valid": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        copy = struct_layout(Op.LD1)  # every copy instruction has this format
        cmd = data_register(COMMAND)
        insn = Signal(copy)
        m.d.comb += insn.eq(cmd.insn)
        stopped = Signal()
        alive = Signal()
        m.d.comb += alive.eq(~stopped & ~self.stop)
        with m.If(self.stop):
            m.d.sync += stopped.eq(1)

        # Accept a command once the runs of the last one have left: its constants serve all stages below.
        setting_up, walking = Signal(), Signal()
        offsets_valid, checked_valid = Signal(), Signal()
        idle = Signal()
        m.d.comb += [
            idle.eq(~(setting_up | walking | offsets_valid | checked_valid)),
            self.cmd.ready.eq(idle & ~stopped),  # one that comes with `stop` is dropped
            self.busy.eq(~idle | self.run.valid),
        ]
        with m.If(self.cmd.valid & self.cmd.ready):
            m.d.sync += [cmd.eq(self.cmd.payload), setting_up.eq(1)]

        # Set up: what is constant for the command, and the first run.
        read_end = Signal(LEN)  # of a run's bytes
        illegal = Signal()
        forbidden = self._forbidden(insn) if self._forbidden else 0
        m.d.comb += illegal.eq((insn.len == 0) | (insn.n2 == 0) | (insn.n1 == 0) | (insn.n0 == 0) | forbidden)
        count = [Signal(16, name=f"count{k}") for k in range(3)]  # i + 1 of each loop
        at_end = [Signal(name=f"at_end{k}") for k in range(3)]  # whether it is n
        src, dst = Signal(ADDR), Signal(ADDR)
        src_rows = [Signal(ADDR, name=f"src_row{k}") for k in (1, 2)]  # src where i0 = 0, and where i1 = i0 = 0
        dst_rows = [Signal(ADDR, name=f"dst_row{k}") for k in (1, 2)]
        with m.If(setting_up & alive):
            m.d.sync += [
                setting_up.eq(0),
                walking.eq(~illegal),
                read_end.eq(Mux(insn.hi < insn.len, insn.hi, insn.len)),
            ]

        # Walk the loops.
        offsets_ready, checked_ready, run_ready = Signal(), Signal(), Signal()
        following = [Signal(16, name=f"following{k}") for k in range(3)]
        m.d.comb += [
            to.eq(Mux(setting_up | end, 0, i) + 1) for to, end, i in zip(following, at_end, count, strict=True)
        ]
        clipped = ~((insn.lo1 < count[1]) & (count[1] <= insn.hi1) & (insn.lo0 < count[0]) & (count[0] <= insn.hi0))
        moved = [
            _moved(m, setting_up, insn.src, at_end, src, src_rows, [insn.src_s0, insn.src_s1, insn.src_s2]),
            _moved(m, setting_up, insn.dst, at_end, dst, dst_rows, [insn.dst_s0, insn.dst_s1, insn.dst_s2]),
        ]
        step = Signal()
        m.d.comb += step.eq(walking & offsets_ready)
        steps = [step, step & at_end[0], step & at_end[0] & at_end[1]]  # of each loop
        for stepped, i, end, to, n in zip(steps, count, at_end, following, (insn.n0, insn.n1, insn.n2), strict=True):
            with m.If(setting_up | stepped):
                m.d.sync += [i.eq(to), end.eq(to == n)]
        with m.If(steps[2] & at_end[2]):
            m.d.sync += walking.eq(0)
        for to, at in zip(moved, ((src, *src_rows), (dst, *dst_rows)), strict=True):
            for stepped, here in zip(steps, at, strict=True):
                with m.If(setting_up | stepped):
                    m.d.sync += here.eq(to)

        # First stage: offsets of the first byte read and written, and of the one behind the last.
        offsets = Signal(
            data.StructLayout(
                {
                    "src": ADDR, "src_first": ADDR + 1, "src_end": ADDR + 1,
                    "dst": ADDR, "dst_end": ADDR + 1, "reads": 1, "final": 1,
                }
            )
        )  # fmt: skip
        m.d.comb += offsets_ready.eq(~offsets_valid | checked_ready)
        with m.If(offsets_ready):
            m.d.sync += [
                offsets_valid.eq(walking),
                offsets.src.eq(src),
                offsets.src_first.eq(src + insn.lo),
                offsets.src_end.eq(src + read_end),
                offsets.dst.eq(dst),
                offsets.dst_end.eq(dst + insn.len),
                offsets.reads.eq((insn.lo < read_end) & ~clipped),
                offsets.final.eq(Cat(at_end).all()),
            ]

        # Second stage: limits checked, bases added.
        src_base, src_limit = self._side(self._src_size, insn, cmd.src_base, cmd.src_limit)
        dst_base, dst_limit = self._side(self._dst_size, insn, cmd.dst_base, cmd.dst_limit)
        src_beyond, src_culprit = _beyond(m, "src", offsets.src_first, offsets.src_end, src_limit)
        dst_beyond, dst_culprit = _beyond(m, "dst", offsets.dst, offsets.dst_end, dst_limit)
        src_bad, beyond = Signal(), Signal()
        m.d.comb += [
            src_bad.eq(offsets.reads & src_beyond),
            beyond.eq(offsets_valid & (src_bad | dst_beyond)),
        ]
        src_at, dst_at = Signal(ADDR), Signal(ADDR)
        checked = Signal(data.StructLayout({"src": ADDR, "dst": ADDR, "dst_end": ADDR, "reads": 1, "final": 1}))
        m.d.comb += checked_ready.eq(~checked_valid | run_ready)
        with m.If(checked_ready):
            m.d.sync += [
                checked_valid.eq(offsets_valid & ~beyond),
                src_at.eq(offsets.src + src_base),
                dst_at.eq(offsets.dst + dst_base),
                checked.src.eq(offsets.src),
                checked.dst.eq(offsets.dst),
                checked.dst_end.eq(offsets.dst_end[:ADDR]),
                checked.reads.eq(offsets.reads),
                checked.final.eq(offsets.final),
            ]

        m.d.comb += [
            self.fault.eq(alive & (beyond & checked_ready | setting_up & illegal)),
            self.fault_info.pc.eq(cmd.pc),
            self.fault_info.code.eq(Mux(setting_up, Fault.ILLEGAL, Fault.LIMIT)),
            self.fault_info.addr.eq(Mux(setting_up, 0, Mux(src_bad, src_culprit, dst_culprit))),
        ]
        with m.If(self.fault):
            m.d.sync += [stopped.eq(1), walking.eq(0), setting_up.eq(0), offsets_valid.eq(0)]

        # Third stage: positions within words.
        m.d.comb += [
            run_ready.eq(~self.run.valid | self.run.ready),
            self.extent_valid.eq(checked_valid & run_ready & ~self.stop),
            self.extent.eq(checked.dst_end),
        ]
        with m.If(run_ready):
            m.d.sync += self.run.valid.eq(checked_valid)
            self._describe(m, insn, cmd.pc, src_at, dst_at, checked, read_end)

        with m.If(self.stop):
            stages = (setting_up, walking, offsets_valid, checked_valid, self.run.valid)
            m.d.sync += [valid.eq(0) for valid in stages]
        return m

    def _side(self, size: MemorySize | None, insn, base, limit):
        """Return base and limit of one side: those of the segment, or those of a memory that offsets address
        directly."""
        return (base, limit) if size is None else (0, size(insn))

    def _describe(self, m: Module, insn, pc, src_at, dst_at, checked, read_end) -> None:
        run = self.run.payload
        low = log2(self._word_bytes)
        start = dst_at[:low]
        before_start = Signal(signed(low + 1))
        rotate = Signal(low)
        read_first, read_last = Signal(LEN + 1), Signal(LEN + 1)
        src = Signal(ADDR)  # of the source byte that frame position 0 takes
        m.d.comb += [
            rotate.eq(src_at[:low] - start),
            src.eq(src_at - start),
            read_first.eq(insn.lo + start),
            before_start.eq(start - 1),
            read_last.eq(read_end + before_start),
        ]
        m.d.sync += [
            run.src.eq(src[low:]),
            run.dst.eq(dst_at[low:]),
            run.reads.eq(checked.reads),
            run.src_first.eq((read_first + rotate)[low:]),
            run.src_last.eq((read_last + rotate)[low:]),
            run.rotate.eq(rotate),
            run.read_first.eq(read_first),
            run.read_last.eq(read_last),
            run.first.eq(start),
            run.last.eq(insn.len + before_start),
            run.fill.eq(insn.fill),
            run.final.eq(checked.final),
        ]
        sources = {"pc": pc, "src": checked.src, "dst": checked.dst}
        for name in self._tag:
            m.d.sync += run.tag[name].eq(sources[name] if name in sources else insn[name])


def _moved(
    m: Module, setting_up: Signal, first: Value, at_end: list, here: Signal, rows: list[Signal], strides: list
) -> Signal:
    """Return where the next run of one side lies, the ``first`` in set-up: one adder, whose operands depend on the
    loops that end here."""
    base, stride = Signal.like(here), Signal(signed(ADDR))
    row1, row2 = rows
    m.d.comb += [base.eq(here), stride.eq(strides[0])]
    with m.If(at_end[0]):
        m.d.comb += [base.eq(row1), stride.eq(strides[1])]
        with m.If(at_end[1]):
            m.d.comb += [base.eq(row2), stride.eq(strides[2])]
    with m.If(setting_up):
        m.d.comb += [base.eq(first), stride.eq(0)]
    moved = Signal.like(here)
    m.d.comb += moved.eq(base + stride)
    return moved


def _beyond(m: Module, name: str, first: Value, end: Value, limit: Value | int) -> tuple[Value, Value]:
    """Return whether some byte from ``first`` to before ``end`` (modulo 2^32, with what was carried beyond) is not
    below ``limit``, and the first such byte. ``first`` is before ``end``, so ``end`` alone has a carry if the last
    byte is that before 2^32, which no limit is beyond, or lies behind it."""
    wholly = Signal(name=f"{name}_wholly_beyond")
    m.d.comb += wholly.eq(first[:ADDR] >= limit)
    around = end[ADDR] & ~first[ADDR:].any()
    return wholly | (end[:ADDR] > limit) | around, Mux(wholly, first[:ADDR], limit)
