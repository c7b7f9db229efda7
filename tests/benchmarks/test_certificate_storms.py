from dataclasses import replace
from pathlib import Path

import pytest

import caesura
from benchmarks.certificate_storms import BACKEND, LONG, PRESET, DeviceStorms, scenario
from caesura.scenario.model_images import ModelImages
from caesura.views.progress import Progress
from hw.contract.params import preset
from sw.admission import ReleaseTimes


@pytest.fixture(scope="module")
def certificate():
    return caesura.admit(scenario())


@pytest.fixture
def storms(certificate):
    images = ModelImages(Progress()).of(scenario(), preset(PRESET), Path())
    with caesura.open(PRESET, BACKEND) as device:
        yield DeviceStorms(device, images, certificate)


def one_storm(storms):
    """One request of each, the more urgent ones while the others run."""
    releases = {"perception": ReleaseTimes(), "planning": ReleaseTimes(40_000), "digits": ReleaseTimes(70_000)}
    return storms.serve(storms.certificate.streams, releases, 100_000, 0)


def test_a_storm_is_served_within_its_certificate(storms):
    run = one_storm(storms)
    assert storms.equal and storms.requests == 3 and storms.violated == 0
    assert [one.stream for one in sorted(run.served, key=lambda one: one.end)] == ["digits", "planning", "perception"]
    assert {"pause", "run"} <= run.instants.keys()


def test_a_request_beyond_its_bound_is_counted(storms):
    told = [replace(one, response=10_000) for one in storms.certificate.responses]
    storms.certificate = replace(storms.certificate, responses=told)
    one_storm(storms)
    assert storms.violated == 3


@pytest.mark.slow
def test_searches_find_nothing_beyond_a_certificate(storms):
    for name in LONG:
        found = storms.search(name, 20)
        assert found.response <= storms.certificate.of(name).response
    assert storms.equal and storms.violated == 0
