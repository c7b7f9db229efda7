"""Rows: targets, and what JSON says of them."""

import pytest

from benchmarks.figures import Figure, Measured, Row, Target, select
from caesura import UsageError
from compiler.ir import CompileError

PERCENT = Target(80, 95)
SECONDS = Target(180, 60, "s", at_most=True)


def figure(name, optional=False):
    return Figure(name, PERCENT, lambda lab: Measured(90, True, {}), optional)


@pytest.mark.parametrize(
    ("value", "target", "ok", "aimed"),
    [
        (79.9, PERCENT, False, False),
        (80, PERCENT, True, False),
        (95, PERCENT, True, True),
        (181, SECONDS, False, False),
        (180, SECONDS, True, False),
        (60, SECONDS, True, True),
    ],
)
def test_targets(value, target, ok, aimed):
    row = Row("x", value, target, True).to_dict()
    assert (row["ok"], row["detail"]["aim_reached"]) == (ok, aimed)


def test_wrong_outputs_are_never_ok():
    assert not Row("x", 99, PERCENT, correct=False).ok


def test_members():
    assert list(Row("x", 99.12345, PERCENT, True, {"why": 1}).to_dict().items())[:-1] == [
        ("name", "x"), ("value", 99.123), ("unit", "%"), ("must", 80), ("aim", 95), ("ok", True),
    ]  # fmt: skip


def test_what_cannot_be_measured_says_why():
    def fail(lab):
        raise CompileError("operator 'x': too large")

    row = Figure("x", PERCENT, fail).row(None)
    assert (row.value, row.ok, row.to_dict()["detail"]["error"]) == (None, False, "operator 'x': too large")


def test_selection():
    figures = [figure("conv_a"), figure("conv_b"), figure("gemm"), figure("long", optional=True)]
    names = lambda *arguments: [f.name for f in select(figures, *arguments)]  # noqa: E731
    assert names([], False) == ["conv_a", "conv_b", "gemm"]
    assert names([], True) == ["conv_a", "conv_b", "gemm", "long"]
    assert names(["conv_*"], False) == ["conv_a", "conv_b"]
    assert names(["long", "gemm"], False) == ["gemm", "long"]
    with pytest.raises(UsageError, match=r"no figure matches 'cov\*'; there are conv_a, conv_b"):
        select(figures, ["gemm", "cov*"], False)
