"""What a compiled simulator is found by."""

from hw.contract.params import preset
from sim.rtl.opening import design_digest

TINY = preset("tiny")


def test_another_name_is_the_same_design():
    assert design_digest(TINY.replace(name="other")) == design_digest(TINY)
    assert design_digest(TINY.replace(dram_latency=70)) == design_digest(TINY), "it is set at run time"


def test_another_machine_is_another_design():
    others = [TINY.replace(**change) for change in ({"engines": 2}, {"lv2_bytes": 1 << 18}, {"lv1_banks": 4})]
    assert len({design_digest(params) for params in (TINY, *others)}) == 4
