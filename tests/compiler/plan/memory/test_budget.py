"""How LV2 is divided when tensors have their places: no byte that staging areas or windows can use is left over."""

import pytest

from compiler.plan.memory.budget import Lv2Budget, Lv2Division
from compiler.plan.memory.operand import StagingArea
from hw.contract.params import preset

BASE = preset("base")
LV2, AREA, WINDOWS = 64 * 1024, 4096, 8192


@pytest.mark.parametrize("useful_staging", [AREA, AREA + 1024, 3 * AREA])
@pytest.mark.parametrize("tensors", [0, 16 * 1024, 32 * 1024, 44 * 1024, 46 * 1024])
def test_what_tensors_leave_is_given_out(tensors, useful_staging):
    least = Lv2Budget(2, 2, StagingArea(0, AREA), WINDOWS, 4608)
    division = Lv2Division(least, LV2 - 2 * WINDOWS, 1 << 20, useful_staging, 4096)
    end = max(tensors, 2 * AREA)
    budget = division.extended(end, LV2, BASE)
    assert budget.windows >= WINDOWS and budget.area.size >= AREA
    assert max(end, budget.staging_end) + 2 * budget.windows > LV2 - 4 * BASE.lv1_word
    assert budget.staging_base in (0, end)
