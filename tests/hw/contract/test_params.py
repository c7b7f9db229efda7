import dataclasses

import pytest
from hypothesis import given, strategies as st

from hw.contract.params import DRAM_TIMING, PRESETS, ParamError, SocParams, preset

SIZES = [f.name for f in dataclasses.fields(SocParams) if f.name != "name"]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_a_round_trip(name):
    params = preset(name)
    assert SocParams.from_dict(params.to_dict()) == params
    assert params.name == name


def test_unknown_preset_lists_the_known_ones():
    with pytest.raises(ParamError, match="no preset named 'huge'; known are nano, tiny, ecp5, base, cluster64"):
        preset("huge")


@given(st.sampled_from(SIZES), st.one_of(st.integers(-5, 0), st.just(True), st.just(2.0), st.text(max_size=3)))
def test_every_field_must_be_a_positive_integer(field, value):
    with pytest.raises(ParamError, match=f"{field} must be"):
        SocParams(**{field: value})


@given(st.sampled_from(SIZES), st.integers(1, 1 << 31))
def test_any_single_change_is_accepted_or_refused_by_name(field, value):
    try:
        changed = preset("tiny").replace(**{field: value})
    except ParamError as error:
        assert field in str(error) or field in ("cols", "pes", "rows", "dram_word")
    else:
        same = value == getattr(preset("tiny"), field)
        assert (changed.digest() == preset("tiny").digest()) == (same or field in DRAM_TIMING)
        assert (changed.with_nominal_dram() == preset("tiny").with_nominal_dram()) == (same or field in DRAM_TIMING)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"cols": 8}, "cols must equal rows"),
        ({"rows": 32, "cols": 32}, "rows must be 4, 8 or 16"),
        ({"vec_lanes": 16}, "vec_lanes must be a multiple of cols"),
        ({"pes": 1}, "pes\\*rows is the LV1 word"),
        ({"dram_word": 32}, "dram_word must be 8 to"),
        (
            {"pes": 8, "rows": 16, "cols": 16, "vec_lanes": 16, "dram_word": 128},
            "dram_word must be 8 to pes\\*rows \\(128\\) and at most 64 \\(one instruction\\) bytes, not 128",
        ),
        ({"pes": 16, "rows": 8, "cols": 8, "vec_lanes": 8}, "vec_lanes must be at least pes\\*rows/8 \\(16\\), not 8"),
        ({"engines": 9}, "engines must be 1 to 8"),
        ({"dram_latency": 3}, "dram_latency must be 4 to 65535, not 3"),
        ({"dram_row_miss": 1 << 16}, "dram_row_miss must be 1 to 65535, not 65536"),
        ({"dram_bandwidth": 101}, "dram_bandwidth must be 1 to 100, not 101"),
        ({"lv1_bytes": 24 * 1024}, "lv1_bytes must be a power of two"),
        ({"axi_burst_beats": 256, "dram_word": 32, "rows": 16, "cols": 16, "vec_lanes": 16}, "4 KiB page"),
        ({"dram_refresh_interval": 100, "dram_refresh_cycles": 100}, "dram_refresh_cycles must be less than"),
        ({"dram_refresh_interval": 1 << 40}, "dram_refresh_interval must be at most"),
        ({"dram_row_bytes": 4}, "dram_row_bytes must be dram_word"),
    ],
)
def test_refusals_name_field_and_limit(change, message):
    with pytest.raises(ParamError, match=message):
        SocParams(**change)


def test_replace_and_from_dict_refuse_unknown_fields():
    with pytest.raises(ParamError, match="no parameter named 'mac'"):
        preset("tiny").replace(mac=3)
    with pytest.raises(ParamError, match="do not match this version: mac"):
        SocParams.from_dict(preset("tiny").to_dict() | {"mac": 3})


def test_the_timing_of_the_dram_makes_no_other_hardware():
    slow = preset("base").replace(dram_latency=300, dram_row_miss=50, dram_bandwidth=30)
    assert slow.digest() == preset("base").digest()
    assert slow.with_nominal_dram() == preset("base").with_nominal_dram() != preset("base")
    assert slow.dram_bytes_per_cycle == 4.8
    assert all(p.dram_bytes_per_cycle == p.dram_word for p in PRESETS.values())


def test_digest_ignores_the_name():
    assert preset("tiny").replace(name="mine").digest() == preset("tiny").digest()
    assert len({p.digest() for p in PRESETS.values()}) == len(PRESETS)


def test_derived_sizes_of_base():
    base = preset("base")
    assert (base.macs, base.lv1_word, base.out_channels, base.vec_groups) == (512, 32, 32, 2)
