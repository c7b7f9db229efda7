from .outcome import Frame as Frame, LayerRun as LayerRun, Outcome as Outcome
from .outcome_chart import MARGIN as MARGIN, Bar as Bar, chart as chart
from .policies import Policies as Policies
from .reports import report as report, to_table as to_table
from .rtl import Alone as Alone, RtlRunner as RtlRunner
from .runner import RUNNERS as RUNNERS, Runner as Runner, alone_time as alone_time, run_scenario as run_scenario
from .schema import (
    Scenario as Scenario,
    ScenarioError as ScenarioError,
    load_scenario as load_scenario,
    parse_scenario as parse_scenario,
)
from .synthetic import SyntheticRunner as SyntheticRunner
from .urgent import run_urgent as run_urgent
from .urgent_report import urgent_fields as urgent_fields, urgent_tables as urgent_tables
