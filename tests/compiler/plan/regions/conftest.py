"""Graphs of a few layers, in which a region is most of the graph."""

import pytest


@pytest.fixture(autouse=True)
def _regions_of_any_size(monkeypatch):
    monkeypatch.setattr("compiler.plan.regions.regions._PART", 1.0)
