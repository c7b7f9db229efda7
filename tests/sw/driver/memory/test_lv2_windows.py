import pytest

from sw.driver import DriverError
from sw.driver.memory.placement import choose_windows
from sw.driver.memory.ranges import intersect, size


def test_an_empty_chip_takes_low_addresses_and_current_places_stay():
    assert choose_windows((64, 32), 256, 16) in [(0, 64), (32, 0)]
    assert choose_windows((64, 32), 256, 16, current=(128, 96)) == (128, 96)
    assert choose_windows((0, 32), 256, 16) == (0, 0)


def test_dirty_before_clean_before_prefetched():
    where = {"dirty": [(0, 100)], "clean": [(100, 200)], "prefetched": [(200, 256)]}
    at, _ = choose_windows((48, 0), 256, 16, **where)
    assert at == 208
    at, _ = choose_windows((128, 0), 256, 16, **where)
    assert at == 112 or at == 128
    assert size(intersect([(at, at + 128)], where["dirty"])) == 0


def test_windows_move_independently_into_gaps():
    first, second = choose_windows((64, 64), 256, 16, dirty=[(64, 128), (192, 208)])
    for at in (first, second):
        assert size(intersect([(at, at + 64)], [(64, 128), (192, 208)])) == 0 or size([(0, 64), (128, 192)]) < 128
    assert {first, second} == {0, 128}


def test_what_runs_is_never_overlapped():
    at, _ = choose_windows((64, 0), 256, 16, taken=[(0, 192)], dirty=[(192, 256)], current=(0, 0))
    assert at == 192
    with pytest.raises(DriverError, match="no place for windows of 128 and 0 bytes beside 192"):
        choose_windows((128, 0), 256, 16, taken=[(0, 192)])
