"""The example policy: short, as the page about it says, and usable as the page says."""

from pathlib import Path

from caesura.scenario import run_scenario, serve
from examples.policies import least_memory
from sim.backends import DEFAULT_BACKEND

SOURCE = Path(least_memory.__file__).read_text()


def test_it_is_under_30_lines():
    assert len(SOURCE.splitlines()) < 30


def test_the_page_shows_it():
    page = Path("docs/write-a-policy.md").read_text()
    shown = page.split("```python\n")[1].split("```")[0]
    imports, body = shown.split("\n\n\n")
    assert imports in SOURCE and body.strip() in SOURCE


def test_it_serves_a_scenario_on_the_rtl():
    result = run_scenario(
        "examples/scenarios/small_models.toml", f"{least_memory.__file__}:LeastMemory", DEFAULT_BACKEND
    )
    assert result["requests"] == 9


def test_it_serves_a_scenario():
    served = serve("examples/scenarios/mixed_reality.toml", least_memory.LeastMemory).result
    assert (served["requests"], served["policy"]) == (195, "LeastMemory")
