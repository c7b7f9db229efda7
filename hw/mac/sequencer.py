"""Controls the MAC unit: it names the weight word, activation word and accumulator row of each cycle, by counters of
nested loops."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.contract.formats import MAC_FORMAT
from hw.contract.isa import MacMode, Op
from hw.contract.job import Fault
from hw.contract.params import SocParams
from hw.interfaces import COMMAND, FAULT, PC, struct_layout


class LoopNest(wiring.Component):
    """Counts ``depth`` nested loops; loop 0 is the innermost.

    Members: ``load``: In, start over with ``count`` iterations per loop (at least one each); ``step``: In, go to the
    next iteration; ``moves``: Out, one-hot, the loop that a step advances while all inner loops wrap; ``last``: Out,
    this is the last iteration.
    """

    def __init__(self, depth: int, width: int) -> None:
        super().__init__(
            {
                "load": In(1), "step": In(1), "count": In(width).array(depth),
                "moves": Out(depth), "last": Out(1),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        wraps = 1  # all loops inside the current one are at their end
        for loop, count in enumerate(self.count):
            left = Signal(count.shape(), name=f"left{loop}")
            again = Signal(count.shape(), name=f"again{loop}")
            at_end = Signal(name=f"at_end{loop}")
            m.d.comb += [at_end.eq(left == 0), self.moves[loop].eq(wraps & ~at_end)]
            with m.If(self.load):
                m.d.sync += [left.eq(count - 1), again.eq(count - 1)]
            with m.Elif(self.step & wraps):
                m.d.sync += left.eq(Mux(at_end, again, left - 1))
            reached = Signal(name=f"wraps{loop}")
            m.d.comb += reached.eq(wraps & at_end)
            wraps = reached
        m.d.comb += self.last.eq(wraps)
        return m


class StridedAddress(wiring.Component):
    """Keeps an address that follows a :class:`LoopNest`: ``base`` plus the sum of index times ``stride`` per loop.

    Each loop remembers where its iteration began, so that one adder serves all loops. As every such start is itself
    visited, a user that stops at the first address out of range needs ``width`` bits for one stride beyond, no more.

    Members: ``load`` with ``base``: In; ``step`` with ``moves``: In, from the nest; ``stride``: In; ``addr``: Out,
    signed, ``width`` bits.
    """

    def __init__(self, depth: int, width: int, stride_width: int) -> None:
        super().__init__(
            {
                "load": In(1), "base": In(signed(width)), "step": In(1), "moves": In(depth),
                "stride": In(signed(stride_width)).array(depth), "addr": Out(signed(width)),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        starts = [Signal(signed(len(self.base)), name=f"start{k}") for k in range(len(self.stride))]
        start, stride = Signal.like(self.addr), Signal.like(self.stride[0])
        for loop, (own, own_stride) in enumerate(zip(starts, self.stride, strict=True)):
            with m.If(self.moves[loop]):
                m.d.comb += [start.eq(own), stride.eq(own_stride)]
        following = Signal.like(self.addr)
        m.d.comb += [following.eq(start + stride), self.addr.eq(starts[0])]
        for loop, own in enumerate(starts):
            with m.If(self.load):
                m.d.sync += own.eq(self.base)
            with m.Elif(self.step & self.moves[loop:].any()):
                m.d.sync += own.eq(following)
        return m


ACT_WIDTH, ACC_WIDTH, COUNT = 18, 14, 12  #: signed address bits with room for one stride, and bits of a count

_USED = {
    f.name: signed(f.width) if f.signed else f.width for f in MAC_FORMAT if f.name not in ("opcode", "wait", "signal")
}
_STAGED = data.StructLayout({**_USED, "pc": PC})
_RUNNING = (
    "mode", "accumulate", "x_signed", "x_zp", "k2_s", "k1_s", "k0_s", "p1_s", "p0_s", "acc_s", "pc",
)  # fmt: skip


class MacSequencer(wiring.Component):
    """Walks the loops of MAC commands: one weight word and one pixel per cycle, without a gap between blocks.

    Two sequencers run side by side. The loader reads the weights of the *next* block (which may belong to the next
    command) while pixels of the current block are issued; a block starts when its weights have all been read. Both
    memories have the same latency, so a weight word read in the cycle of a block's first pixel enters the shadow
    array just after the block has taken it over.

    Members: ``cmd``, ``abort``, ``fault``, ``fault_info``, ``busy`` as in ``UnitPort``; ``wgt``: Out, read weight word
    ``addr``; ``pixel``: Out, read activation word ``addr``, use it as the other fields say: ``swap`` marks the first
    pixel of a block, ``keep`` adds to accumulator ``row``, ``last`` ends the command.
    """

    def __init__(self, params: SocParams, taps: int) -> None:
        self._params, self._taps = params, taps
        self._act_words = params.lv0_act_bytes // params.rows
        self._wgt_words = params.lv0_wgt_bytes // params.rows
        weight = {"valid": 1, "addr": (self._wgt_words - 1).bit_length(), "signed": 1, "zp": 8, "cols": 1}
        pixel = {
            "valid": 1, "addr": (self._act_words - 1).bit_length(), "signed": 1, "zp": 8, "depthwise": 1, "swap": 1,
            "row": (params.lv0_acc_rows - 1).bit_length(), "keep": 1, "last": 1,
        }  # fmt: skip
        super().__init__(
            {
                "cmd": In(stream.Signature(COMMAND)),
                "abort": In(1),
                "fault": Out(1),
                "fault_info": Out(FAULT),
                "busy": Out(1),
                "wgt": Out(data.StructLayout(weight)),
                "pixel": Out(data.StructLayout(pixel)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        p = self._params
        insn = Signal(struct_layout(Op.MAC))
        m.d.comb += insn.eq(self.cmd.payload.insn)
        staged = Signal(_STAGED)
        waiting = Signal()  # the staged command has not begun issuing pixels
        loading, full = Signal(), Signal()  # weight words are left to read; the next block's have been read
        active, halted = Signal(), Signal()
        take, fire = Signal(), Signal()
        go = ~halted & ~self.abort
        m.d.comb += self.busy.eq((active | waiting) & go)

        # -- commands: the staged one lends its fields to the loader until all its weights are read
        accept = Signal()
        m.d.comb += [
            self.cmd.ready.eq(go & ~loading & (~waiting | take)),
            accept.eq(self.cmd.valid & self.cmd.ready),
        ]
        with m.If(accept):
            m.d.sync += [staged[name].eq(insn[name]) for name in _USED]
            m.d.sync += [staged.pc.eq(self.cmd.payload.pc), waiting.eq(1)]
        with m.Elif(take):
            m.d.sync += waiting.eq(0)

        # -- loader
        m.submodules.words = words = LoopNest(4, COUNT)
        wgt_addr, word, swap = Signal(17), Signal(), Signal()
        wgt_bad = wgt_addr >= self._wgt_words
        m.d.comb += [
            word.eq(loading & (~full | swap) & ~wgt_bad & go),
            words.load.eq(accept),
            words.step.eq(word),
            Cat(words.count).eq(Cat(Const(p.rows, COUNT), insn.n0, insn.n1, insn.n2)),
            self.wgt.valid.eq(word),
            self.wgt.addr.eq(wgt_addr),
            self.wgt.signed.eq(staged.w_signed),
            self.wgt.zp.eq(staged.w_zp),
            self.wgt.cols.eq(staged.w_cols),
        ]
        with m.If(swap):
            m.d.sync += full.eq(0)
        with m.If(accept):
            m.d.sync += [loading.eq(1), wgt_addr.eq(insn.wgt)]
        with m.Elif(word):
            m.d.sync += wgt_addr.eq(wgt_addr + 1)
            with m.If(~words.moves[0]):
                m.d.sync += [full.eq(1), loading.eq(~words.last)]

        # -- pixels
        running = Signal(data.StructLayout({name: _STAGED[name].shape for name in _RUNNING}))
        m.submodules.pixels = pixels = LoopNest(5, COUNT)
        m.submodules.act = act = StridedAddress(5, ACT_WIDTH, 16)
        m.submodules.acc = acc = StridedAddress(3, ACC_WIDTH, 13)
        illegal, opening, first_block = Signal(), Signal(), Signal()
        counts = (staged.p0, staged.p1, staged.n0, staged.n1, staged.n2)
        m.d.comb += [
            take.eq(waiting & (~active | (fire & pixels.last)) & go),
            *(nest.eq(count) for nest, count in zip(pixels.count, counts, strict=True)),
            act.base.eq(staged.act),
            acc.base.eq(staged.acc),
            *(
                stride.eq(running[name])
                for stride, name in zip(act.stride, ("p0_s", "p1_s", "k0_s", "k1_s", "k2_s"), strict=True)
            ),
            act.moves.eq(pixels.moves),
            acc.stride[0].eq(1),
            acc.stride[1].eq(running.acc_s),
            acc.moves.eq(Cat(pixels.moves[:2], pixels.moves[2:].any())),
            *(part.load.eq(take) for part in (pixels, act, acc)),
            *(part.step.eq(fire) for part in (pixels, act, acc)),
        ]
        with m.If(take):
            m.d.sync += [running[name].eq(staged[name]) for name in _RUNNING]
            m.d.sync += [
                active.eq(1), opening.eq(1), first_block.eq(1),
                illegal.eq((staged.mode > MacMode.DEPTHWISE.value) | Cat(c == 0 for c in counts).any()),
            ]  # fmt: skip
        with m.Elif(fire):
            m.d.sync += [active.eq(~pixels.last), opening.eq(pixels.moves[2:].any())]
            with m.If(pixels.moves[2:].any()):
                m.d.sync += first_block.eq(0)

        # -- checks and hazards
        depthwise, keep = Signal(), Signal()
        reach = Mux(depthwise, self._taps - 1, 0)
        act_bad = (act.addr < 0) | (act.addr + reach >= self._act_words)
        acc_bad = acc.addr >= p.lv0_acc_rows
        starved = opening & ~full
        recent = [Signal(data.StructLayout({"valid": 1, "row": ACC_WIDTH}), name=f"recent{i}") for i in range(2)]
        clash = Cat(one.valid & (one.row == acc.addr.as_unsigned()) for one in recent).any()
        m.d.sync += [recent[0].valid.eq(fire), recent[0].row.eq(acc.addr), recent[1].eq(recent[0])]
        wrong = Signal()
        m.d.comb += [
            depthwise.eq(running.mode == MacMode.DEPTHWISE.value),
            keep.eq(~first_block | running.accumulate),
            wrong.eq(active & (illegal | act_bad | acc_bad | (starved & loading & wgt_bad)) & go),
            fire.eq(active & ~wrong & ~starved & ~(keep & clash) & go),
            swap.eq(fire & opening),
        ]
        m.d.comb += [
            self.pixel.valid.eq(fire),
            self.pixel.addr.eq(act.addr),
            self.pixel.signed.eq(running.x_signed),
            self.pixel.zp.eq(running.x_zp),
            self.pixel.depthwise.eq(depthwise),
            self.pixel.swap.eq(opening),
            self.pixel.row.eq(acc.addr),
            self.pixel.keep.eq(keep),
            self.pixel.last.eq(pixels.last),
        ]
        m.d.sync += self.fault.eq(wrong)
        with m.If(wrong):
            m.d.sync += [
                halted.eq(1),
                self.fault_info.pc.eq(running.pc),
                self.fault_info.code.eq(Mux(illegal, Fault.ILLEGAL.value, Fault.LIMIT.value)),
                self.fault_info.addr.eq(
                    Mux(illegal, running.mode, Mux(act_bad, act.addr, Mux(acc_bad, acc.addr, wgt_addr)))
                ),
            ]
        return m
