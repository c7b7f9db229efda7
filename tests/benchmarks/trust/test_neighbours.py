"""What the campaign of neighbours looks at is seen to fail."""

import pytest

from benchmarks.trust.differential import VICTIM, Mismatch
from benchmarks.trust.neighbours import NeighbourCampaign
from benchmarks.trust.soc import Wedged


@pytest.fixture
def campaign():
    made = NeighbourCampaign("native")
    yield made
    made.close()


def only(campaign: NeighbourCampaign, name: str) -> None:
    campaign._scenes = [scene for scene in campaign._scenes if scene[0] == name] * 5


def dropping(queue, *names: str):
    """What a mutant does that ignores these members of a descriptor."""
    return lambda tenant, body, prologue=None, **fields: queue(
        tenant, body, prologue, **{name: value for name, value in fields.items() if name not in names}
    )


def test_a_prologue_that_does_not_wait_for_its_window(campaign, monkeypatch):
    only(campaign, "window_after")
    campaign.round(5)
    monkeypatch.setattr(campaign._soc, "queue", dropping(campaign._soc.queue, "window_after"))
    with pytest.raises(Mismatch, match="window_after: DRAM at"):
        campaign.round(5)


def test_a_job_that_does_not_wait_for_its_event(campaign, monkeypatch):
    only(campaign, "events")
    campaign.round(5)
    queue = campaign._soc.queue
    heedless = dropping(queue, "flags")
    monkeypatch.setattr(
        campaign._soc, "queue", lambda tenant, *rest, **f: (heedless if tenant == VICTIM else queue)(tenant, *rest, **f)
    )
    with pytest.raises(Mismatch, match="events: a job that waits for "):
        campaign.round(5)


def test_a_victim_that_stands_still(campaign, monkeypatch):
    only(campaign, "reset in mid-flight")
    campaign.round(5)
    reset = campaign._soc.reset

    def too_much(tenant: int) -> None:
        reset(tenant)
        campaign._soc.write(VICTIM, "CONTROL", 0)

    monkeypatch.setattr(campaign._pair, "restart", lambda rng: None)
    monkeypatch.setattr(campaign._soc, "reset", too_much)
    with pytest.raises((Mismatch, Wedged), match="reset in mid-flight: engine 1 does not end its job within"):
        for seed in range(5):
            campaign.round(seed)
