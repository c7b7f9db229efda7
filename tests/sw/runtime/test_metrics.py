"""Metrics against values worked out by hand."""

import math

import pytest

from sw.runtime import metrics


def test_antt():
    assert metrics.antt([20, 30], [10, 10]) == 2.5


def test_stp_sums_over_programs():
    assert metrics.stp({"a": [0.5, 1.0], "b": [0.25]}) == 1.0


def test_fairness():
    assert metrics.fairness({"a": [0.8], "b": [0.2, 0.2]}) == pytest.approx(0.25)


def test_sla_violations_count_requests_with_deadlines():
    assert metrics.sla_violation_rate([(5, 4), (5, 5), (9, None), (math.inf, 100), (1, 2)]) == 0.5
    assert metrics.sla_violation_rate([(9, None)]) == 0


def test_percentiles_by_nearest_rank():
    values = list(range(100, 0, -1))
    assert [metrics.percentile(values, percent) for percent in (50, 90, 99, 100)] == [50, 90, 99, 100]
    assert metrics.percentile([7], 50) == 7
    assert math.isnan(metrics.percentile([], 50))


def test_prediction_error_is_absolute():
    assert metrics.prediction_error([1, 5], [3, 4]) == 1.5


def test_makespan_bound():
    assert metrics.makespan_bound([10, 20], [30, 30], engines=2) == 30
    assert metrics.makespan_bound([10, 20], [30, 40]) == 70
