import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.params import PRESETS, ParamError, SocParams, preset

SIZES = [f.name for f in dataclasses.fields(SocParams) if f.name != "name"]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_a_round_trip(name):
    params = preset(name)
    assert SocParams.from_dict(params.to_dict()) == params
    assert params.name == name


def test_unknown_preset_lists_the_known_ones():
    with pytest.raises(ParamError, match="no preset named 'huge'; known are tiny, ecp5, base, cluster64"):
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
        assert (changed.digest() == preset("tiny").digest()) == (value == getattr(preset("tiny"), field))


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
        ({"lv1_bytes": 24 * 1024}, "lv1_bytes must be a power of two"),
        ({"axi_burst_beats": 256, "dram_word": 32, "rows": 16, "cols": 16, "vec_lanes": 16}, "4 KiB page"),
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


def test_digest_ignores_the_name_only():
    assert preset("tiny").replace(name="mine").digest() == preset("tiny").digest()
    assert len({p.digest() for p in PRESETS.values()}) == len(PRESETS)


def test_derived_sizes_of_base():
    base = preset("base")
    assert (base.macs, base.lv1_word, base.out_channels, base.vec_groups) == (512, 32, 32, 2)
