"""Hardware with four times the MACs."""

import pytest

from benchmarks.scaling import scaled
from hw.contract.params import ParamError, preset


def test_macs_and_bandwidths_are_four_times_those_of_base():
    base = preset("base")
    larger, how = scaled(base)
    assert larger.macs == 4 * base.macs == 2048
    assert larger.dram_word == 4 * base.dram_word
    assert larger.lv2_banks * larger.lv1_word == 4 * base.lv2_banks * base.lv1_word
    assert larger.engines * larger.lv1_word == 4 * base.engines * base.lv1_word
    assert larger.engines * larger.vec_lanes == 4 * base.engines * base.vec_lanes
    same = ("rows", "cols", "lv0_act_bytes", "lv0_wgt_bytes", "lv0_acc_rows", "lv2_bytes", "dram_latency")
    assert all(getattr(larger, name) == getattr(base, name) for name in same)
    assert "4 engines of 8 PEs instead of 2 of 4 (2048 MACs instead of 512)" in how


def test_what_cannot_be_scaled_names_the_limit():
    with pytest.raises(ParamError, match=r"base-x4.*dram_word must be"):
        scaled(preset("base").replace(dram_word=32))
