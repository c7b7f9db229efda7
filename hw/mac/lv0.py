"""Defines LV0: the activation and weight memories of all PEs of an engine."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory, MemoryData
from amaranth.lib.wiring import In, Out

from hw.block_ram import NO_COLLISION
from hw.contract.isa import Lv0Space, Lv0View
from hw.contract.params import SocParams
from hw.interfaces import Lv0WritePort


class Lv0Memory(wiring.Component):
    """Keeps one LV0 space of every PE of an engine.

    The PEs read and write in lockstep, so bank b of all PEs is one memory, ``lv1_word`` bytes wide, with byte enables:
    PE p owns bytes [p*rows, (p+1)*rows). Word w of a PE lies in bank ``w % lv0_banks`` at index ``w // lv0_banks``.

    A word that is read while LD0 writes to its row is undefined in silicon (in simulation it is the old one). MAC
    reads what its semaphores say has landed, and LD0 fills what they say is free: no program of the compiler does that.

    Members: ``write``: In(:class:`Lv0WritePort`), other spaces are ignored; ``read_en``, ``read_addr``: In, word
    address; ``words``: Out, one cycle later, ``taps`` consecutive words from there (they wrap at the end), each
    ``lv1_word`` bytes with PE p's word at byte p*rows. ``data`` holds one ``MemoryData`` per bank, the back door.
    """

    def __init__(self, params: SocParams, space: Lv0Space, taps: int = 1) -> None:
        size = params.lv0_act_bytes if space is Lv0Space.ACT else params.lv0_wgt_bytes
        self._params, self._space = params, space
        self.depth = size // params.rows // params.lv0_banks
        self.data = [MemoryData(shape=8 * params.lv1_word, depth=self.depth, init=[]) for _ in range(params.lv0_banks)]
        super().__init__(
            {
                "write": In(Lv0WritePort(params)),
                "read_en": In(1),
                "read_addr": In((self.depth * params.lv0_banks - 1).bit_length()),
                "words": Out(8 * params.lv1_word).array(taps),
            }
        )

    def elaborate(self, platform):
        m = Module()
        banks = self._params.lv0_banks
        bank_bits = (banks - 1).bit_length()
        bank, index = self.read_addr[:bank_bits], self.read_addr[bank_bits:]
        turn = Signal(bank_bits)
        with m.If(self.read_en):
            m.d.sync += turn.eq(bank)

        found = []
        for b, contents in enumerate(self.data):
            m.submodules[f"bank{b}"] = memory = Memory(contents, attrs=NO_COLLISION)
            self._write(m, memory.write_port(granularity=8), b)
            port = memory.read_port()
            beyond = (bank > b) if len(self.words) > 1 else 0
            needed = 1 if len(self.words) == banks else sum((bank + t)[:bank_bits] == b for t in range(len(self.words)))
            m.d.comb += [port.en.eq(self.read_en & (needed != 0)), port.addr.eq(index + beyond)]
            found.append(port.data)

        for stage in range(bank_bits):  # rotate left by `turn` words
            shift = 1 << stage
            rotated = []
            for b in range(banks):
                word = Signal(8 * self._params.lv1_word, name=f"rotated{stage}_{b}")
                m.d.comb += word.eq(Mux(turn[stage], found[(b + shift) % banks], found[b]))
                rotated.append(word)
            found = rotated
        m.d.comb += [word.eq(value) for word, value in zip(self.words, found, strict=False)]
        return m

    def _write(self, m, port, b: int) -> None:
        """Write bank ``b`` in either view: an interleaved word belongs to one bank, a multicast word has a part for
        each bank, and one of int4 belongs to two banks side by side."""
        rows, pes, write = self._params.rows, self._params.pes, self.write
        bank_bits = (self._params.lv0_banks - 1).bit_length()
        pair_bits = max(0, bank_bits - 1)
        part = slice(b * rows, (b + 1) * rows)
        whole = write.space == self._space.value
        packed = (write.space == Lv0Space.INT4.value) & (self._space is Lv0Space.WGT) & (bank_bits > 0)
        multicast = write.view == Lv0View.MULTICAST.value
        enables = Signal(len(port.en), name=f"enables{b}")
        with m.If(packed):
            m.d.comb += [
                port.addr.eq(write.addr[pair_bits:]),
                port.data.eq(_unpacked(write.data, b % 2)),
                enables.eq(Mux(write.addr[:pair_bits] == b // 2, write.en, 0)),
            ]
        with m.Elif(multicast):
            m.d.comb += [
                port.addr.eq(write.addr),
                port.data.eq(write.data[8 * part.start : 8 * part.stop].replicate(pes)),
                enables.eq(Cat(Mux(chosen, write.en[part], 0) for chosen in write.pe_mask)),
            ]
        with m.Else():
            m.d.comb += [
                port.addr.eq(write.addr[bank_bits:]),
                port.data.eq(write.data),
                enables.eq(Mux(write.addr[:bank_bits] == b, write.en, 0)),
            ]
        m.d.comb += port.en.eq(Mux(write.valid & (whole | packed), enables, 0))


def _unpacked(word: Value, half: int) -> Value:
    """Return int8 for the low (0) or high (1) half of each byte of ``word``."""
    halves = [word[at : at + 4] for at in range(4 * half, len(word), 8)]
    return Cat(Cat(one, one[3].replicate(4)) for one in halves)
