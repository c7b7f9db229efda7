"""This folder runs scenarios: several models served under a policy, and the metrics of that."""

from caesura.scenario.outcome import Frame, LayerRun, Outcome
from caesura.scenario.policies import Policies
from caesura.scenario.report import to_table
from caesura.scenario.runner import RUNNERS, Runner, run_scenario
from caesura.scenario.schema import Scenario, ScenarioError, load_scenario, parse_scenario

__all__ = [
    "RUNNERS",
    "Frame",
    "LayerRun",
    "Outcome",
    "Policies",
    "Runner",
    "Scenario",
    "ScenarioError",
    "load_scenario",
    "parse_scenario",
    "run_scenario",
    "to_table",
]
