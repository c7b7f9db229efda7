"""Counts of every bench stay under their ceilings, so that a change that makes one cost twice as much is seen here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import BENCHES
from benchmarks.counting import ROOT
from benchmarks.proxies import PROXIES

CEILINGS = json.loads((Path(ROOT) / "benchmarks" / "ceilings.json").read_text())
_WIDEST = 2.3  #: times its floor: a ceiling lies a tenth above the count, a floor at half of it


def beyond(counts: dict[str, dict[str, int]], ceilings: dict[str, dict[str, list[int]]]) -> list[str]:
    """What is wrong with ``counts``: one that is not between its bounds, or that has none."""
    found = []
    for bench, limits in ceilings.items():
        for name in sorted(counts.get(bench, {}).keys() ^ limits.keys()):
            found.append(f"{bench}: {name}: counted, or bounded, but not both")
        for name, (floor, ceiling) in limits.items():
            count = counts.get(bench, {}).get(name)
            if count is not None and not floor <= count <= ceiling:
                found.append(f"{bench}: {name}: {count:,}, must be {floor:,} to {ceiling:,}")
    return found


def test_every_bench_has_counts_and_close_bounds():
    """A count of zero is none."""
    assert set(CEILINGS) == set(PROXIES) == {*BENCHES, "trust"}
    for bench, limits in CEILINGS.items():
        assert limits, bench
        for name, (floor, ceiling) in limits.items():
            assert 0 < floor <= ceiling <= _WIDEST * floor, (bench, name)


@pytest.mark.parametrize(("count", "wrong"), [(5, 0), (10, 0), (4, 1), (11, 1), (0, 1), (None, 1)])
def test_a_count_out_of_its_bounds_is_told(count, wrong):
    counts = {} if count is None else {"events": count}
    assert len(beyond({"one": counts}, {"one": {"events": [5, 10]}})) == wrong


def test_a_count_without_bounds_is_told():
    assert beyond({"one": {"events": 1, "more": 2}}, {"one": {"events": [1, 1]}}) == [
        "one: more: counted, or bounded, but not both"
    ]


def test_counts_are_within_their_bounds():
    """In a process of its own, where nothing was worked out before. If a change is meant to cost more, raise the bounds
    in ``benchmarks/ceilings.json`` and say why in the commit; if it costs less, lower them."""
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.proxies"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not beyond(json.loads(done.stdout), CEILINGS)
