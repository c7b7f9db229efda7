"""``caesura memory``: orders with what they need, the bound, and the curve."""

import json

import pytest

from examples.digits import MODEL
from tests.system.command import caesura_command


def test_orders_and_curve_as_json():
    code, out, _ = caesura_command("memory", MODEL, "--sizes", "8KiB,16KiB", "--json")
    found = json.loads(out)
    assert not code and found["proved"] and found["bound"] == 896
    assert [one["name"] for one in found["orders"]] == ["model", "reverse post-order", "greedy", "least"]
    small, large = found["curve"]
    assert (small["lv2"], small["moved"]) == (8192, None) and large["moved"] > 0 and large["cycles"] > 0


def test_people_see_who_makes_the_peak():
    code, out, error = caesura_command("memory", MODEL)
    assert not code and "no order has fewer than 896 bytes alive at a time" in out + error
    assert "alive at conv2" in out + error


@pytest.mark.parametrize("sizes", ["8KiB,16KiB,32KiB", "8KiB"])
def test_a_page_has_orders_and_the_curve(tmp_path, sizes):
    """Of sizes that do not fit there is no point."""
    code, out, error = caesura_command("memory", MODEL, "--sizes", sizes, "--json", "--report", tmp_path / "m.html")
    assert not code, error
    page, points = (tmp_path / "m.html").read_text(), [one for one in json.loads(out)["curve"] if one["moved"]]
    assert "reverse post-order" in page and "no order has fewer than 896 bytes" in page and "8,192" in page
    assert ("bytes of DRAM" in page) == bool(points)
    for key in ("lv2", "moved", "cycles") if points else ():
        assert str([one[key] for one in points]).replace(" ", "") in page, key


def test_a_size_that_is_none_is_refused():
    code, _, error = caesura_command("memory", MODEL, "--sizes", "8KiB,many")
    assert code == 2 and "many" in error


@pytest.mark.parametrize(
    ("flags", "told"),
    [(("--lv2-limit", "64KiB"), "--sizes says"), (("--from-plan", "a.json"), "--from-plan a.json: a plan has one")],
)
def test_flags_that_say_nothing_of_it_are_refused(flags, told):
    code, _, error = caesura_command("memory", MODEL, *flags)
    assert code == 2 and told in error
