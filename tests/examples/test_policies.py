"""The example policy: short, as the page about it says, and usable by name."""

from pathlib import Path

from caesura.scenario import run_scenario
from examples.policies import least_memory
from sim.backends import DEFAULT_BACKEND
from sw.runtime.policies import ORDER

SOURCE = Path(least_memory.__file__).read_text()


def test_it_is_under_30_lines():
    assert len(SOURCE.splitlines()) < 30


def test_the_page_shows_it():
    page = Path("docs/write-a-policy.md").read_text()
    shown = page.split("```python\n")[1].split("```")[0]
    assert shown.strip() in SOURCE


def test_it_serves_a_scenario_on_the_rtl():
    result = run_scenario("examples/scenarios/small_models.toml", "least_memory", DEFAULT_BACKEND)
    assert result["requests"] == 9


def test_it_serves_a_scenario():
    assert ORDER["least_memory"] is least_memory.LeastMemory
    assert run_scenario("examples/scenarios/mixed_reality.toml", "least_memory")["requests"] == 195
