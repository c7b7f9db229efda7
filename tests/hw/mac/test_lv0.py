import numpy as np
import pytest

from hw.contract.isa import Lv0Space, Lv0View
from hw.contract.params import PRESETS, SocParams
from hw.mac.lv0 import Lv0Memory
from tests.support.streams import simulate

PACKED = 2  #: beside the views
WORDS = 8  #: LV1 words that a PE's memory holds


def small(name: str) -> SocParams:
    """The shape of a preset, with little memory."""
    params = PRESETS[name]
    return params.replace(lv0_act_bytes=WORDS * params.lv1_word, lv0_wgt_bytes=WORDS * params.lv1_word)


def write(memory: np.ndarray, params: SocParams, view: int, mask: int, addr: int, data: bytes, en: int) -> None:
    """What ``Lv0WritePort`` says, on (PEs, bytes)."""
    word, rows = params.lv1_word, params.rows
    for i, byte in enumerate(data):
        if not en >> i & 1:
            continue
        if view == PACKED:
            for half, number in enumerate((byte & 15, byte >> 4)):
                memory[i // rows, (2 * addr + half) * rows + i % rows] = number - 16 * (number > 7) & 0xFF
        elif view == Lv0View.INTERLEAVED:
            memory[i // rows, addr * rows + i % rows] = byte
        else:
            for pe in range(params.pes):
                if mask >> pe & 1:
                    memory[pe, addr * word + i] = byte


def read(memory: np.ndarray, params: SocParams, addr: int) -> bytes:
    """The word ``addr`` of every PE, side by side."""
    words = memory.reshape(params.pes, -1, params.rows)
    return words[:, addr % words.shape[1]].tobytes()


@pytest.mark.parametrize("space", [Lv0Space.ACT, Lv0Space.WGT])
@pytest.mark.parametrize("name", PRESETS)
def test_random_writes_of_all_kinds_equal_the_definition(name, space):
    params = small(name)
    taps = min(params.lv0_banks, params.rows) if space is Lv0Space.ACT else 1
    dut = Lv0Memory(params, space, taps)
    rng = np.random.default_rng(params.lv1_word + space)
    word, banks = params.lv1_word, params.lv0_banks
    memory = np.zeros((params.pes, WORDS * word), np.uint8)

    async def testbench(ctx) -> None:
        port = dut.write
        for number in range(120):
            view = int(rng.integers(2 if space is Lv0Space.ACT or banks == 1 else 3))
            mask, most = int(rng.integers(1 << params.pes)), {Lv0View.MULTICAST: 1, PACKED: banks / 2}.get(view, banks)
            addr = int(rng.integers(WORDS * most))
            data, en = rng.bytes(word), int.from_bytes(rng.bytes(word // 8), "little")
            en = (1 << word) - 1 if number % 3 == 0 else en
            valid, mine = rng.random() < 0.9, rng.random() < 0.9
            values = {"view": view, "pe_mask": mask, "addr": addr, "data": int.from_bytes(data, "little"), "en": en}
            named = Lv0Space.INT4 if view == PACKED else space
            others = (1 - space, Lv0Space.ACC, *([Lv0Space.INT4] if space is Lv0Space.ACT else []))
            values |= {"valid": valid, "space": int(named if mine else rng.choice(others)), "view": view & 1}
            for field, value in values.items():
                ctx.set(getattr(port, field), value)
            await ctx.tick()
            ctx.set(port.valid, 0)
            if valid and mine:
                write(memory, params, view, mask, addr, data, en)
            at = int(rng.integers(WORDS * banks))
            ctx.set(dut.read_addr, at)
            ctx.set(dut.read_en, 1)
            await ctx.tick()
            ctx.set(dut.read_en, 0)
            ctx.set(dut.read_addr, int(rng.integers(WORDS * banks)))  # words stay until the next read
            for tap in range(taps):
                got = ctx.get(dut.words[tap]).to_bytes(word, "little")
                assert got == read(memory, params, at + tap), f"write {number}, word {at} + {tap}"
        for b in range(banks):
            for index in range(WORDS):
                got = ctx.get(dut.data[b][index]).to_bytes(word, "little")
                assert got == read(memory, params, index * banks + b), f"bank {b}, index {index}"

    simulate(dut, testbench)
    assert memory.any()


def test_back_to_back_writes_land_in_consecutive_cycles():
    """LV0 has no ``ready``: a word per cycle, views mixed."""
    params = small("tiny")
    dut = Lv0Memory(params, Lv0Space.WGT)
    rng = np.random.default_rng(1)
    memory = np.zeros((params.pes, WORDS * params.lv1_word), np.uint8)
    full = (1 << params.lv1_word) - 1

    async def testbench(ctx) -> None:
        ctx.set(dut.write.valid, 1)
        ctx.set(dut.write.space, int(Lv0Space.WGT))
        ctx.set(dut.write.en, full)
        for number in range(WORDS):
            data, view = rng.bytes(params.lv1_word), number % 2
            write(memory, params, view, 2, number, data, full)
            ctx.set(dut.write.view, view)
            ctx.set(dut.write.pe_mask, 2)
            ctx.set(dut.write.addr, number)
            ctx.set(dut.write.data, int.from_bytes(data, "little"))
            await ctx.tick()
        ctx.set(dut.write.valid, 0)
        for addr in range(WORDS * params.lv0_banks):
            bank, index = addr % params.lv0_banks, addr // params.lv0_banks
            assert ctx.get(dut.data[bank][index]).to_bytes(params.lv1_word, "little") == read(memory, params, addr)

    simulate(dut, testbench)
