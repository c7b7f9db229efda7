"""What an image does to DRAM at the most."""

from hw.contract.assembly import assemble
from hw.contract.params import preset
from sim.cost.traffic import beside

TINY, BASE = preset("tiny"), preset("base")
MAC = "MAC p0=16 n0=16"  # 256 cycles
HELD = 5 + 4  #: instructions of a unit that need not have run
AHEAD = 16


def test_one_engine_has_no_others():
    assert beside([[assemble(MAC)]], TINY, 1024).engines == 0


def test_stores_are_counted_while_they_are_few():
    few, many = ([[assemble("\n".join(["ST2 src_seg=6 dst_seg=3 len=64 hi=64"] * count))]] for count in (3, 100))
    assert beside(few, BASE, 1024).stores == 3
    assert beside(many, BASE, 1024).stores is None
    across = [
        assemble("ST2 src_seg=6 dst_seg=3 dst=224 len=64 hi=64 n0=2 dst_s0=256")
    ]  # both cross a boundary between bursts
    assert beside([across], BASE, 1024).stores == 4
    assert [beside(engine, BASE, 1024).store_beats for engine in (few, [across], many)] == [4, 4, BASE.axi_burst_beats]


def test_instructions_are_issued_no_faster_than_units_run():
    fetches = dict(beside([[assemble("\n".join([MAC] * 400))]], BASE, 1024).fetches)
    assert fetches[16_384] == 16_384 // 256 + HELD + AHEAD
    assert fetches[32_768] == 32_768 // 256 + HELD + AHEAD


def test_the_densest_stretch_counts_whichever_engine_has_it():
    slow, quick = assemble("\n".join([MAC] * 100)), assemble("\n".join(["MAC p0=16"] * 100))
    one = dict(beside([[slow, slow], [slow, slow]], BASE, 1024).fetches)
    other = dict(beside([[slow, slow], [slow, quick]], BASE, 1024).fetches)
    assert other[16_384] > one[16_384]


def test_long_loads_need_few_instructions():
    assert beside([[assemble(MAC)]], BASE, 16 * 1024).loads == 64
    assert beside([[assemble(MAC)]], BASE, 0).loads == 1
