import pytest

from hw.contract.params import PRESETS
from hw.contract.regs import ENGINE_BASE, ENGINE_REGS, ENGINE_STRIDE, GLOBAL_REGS, engine_reg, global_reg, register_map

BLOCKS = pytest.mark.parametrize("regs", [GLOBAL_REGS, ENGINE_REGS], ids=["global", "engine"])


@pytest.mark.parametrize("engines", range(1, 9))
def test_addresses_are_aligned_and_unique(engines):
    addresses = list(register_map(engines).values())
    assert len(set(addresses)) == len(addresses)
    assert all(a % 4 == 0 for a in addresses)
    assert max(addresses) < 1 << 16, "AXI4-Lite has 16 address bits"


@BLOCKS
def test_blocks_stay_inside_their_window(regs):
    window = ENGINE_BASE if regs is GLOBAL_REGS else ENGINE_STRIDE
    assert all(reg.offset + 4 * reg.count <= window for reg in regs)
    assert [reg.offset for reg in regs] == sorted(reg.offset for reg in regs)


@BLOCKS
def test_bit_fields_do_not_overlap(regs):
    for reg in regs:
        taken = 0
        for bits in reg.bits:
            mask = ((1 << bits.width) - 1) << bits.low
            assert mask < 1 << 32 and not taken & mask, f"{reg.name}.{bits.name}"
            taken |= mask
        assert len({b.name for b in reg.bits}) == len(reg.bits)
        assert reg.doc


@BLOCKS
def test_names_are_unique(regs):
    assert len({reg.name for reg in regs}) == len(regs)


def test_lookups_agree_with_the_map():
    addresses = register_map(2)
    assert engine_reg(1, "SEM", 5) == addresses["E1.SEM[5]"]
    assert global_reg("EVENT", 3) == addresses["EVENT[3]"] == 0x10C
    for lookup in (lambda: engine_reg(0, "NOPE"), lambda: global_reg("NOPE")):
        with pytest.raises(KeyError, match="NOPE"):
            lookup()


def test_presets_have_registers_for_all_they_count():
    events = next(reg.count for reg in GLOBAL_REGS if reg.name == "EVENT")
    semaphores = next(reg.count for reg in ENGINE_REGS if reg.name == "SEM")
    for params in PRESETS.values():
        assert params.events <= events and params.semaphores <= semaphores
