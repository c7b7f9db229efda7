from .alone import times_alone as times_alone
from .arrivals import Closed as Closed, Periodic as Periodic, Poisson as Poisson, TraceSpec as TraceSpec
from .backends import RUNNERS as RUNNERS
from .closed_loop import closed_loops as closed_loops
from .device_report import DeviceReport as DeviceReport
from .file_table import ScenarioError as ScenarioError, explained as explained
from .lengths import LengthRange as LengthRange
from .machine_choice import hardware_of as hardware_of, on_devices as on_devices, on_machine as on_machine
from .model_images import ModelImages as ModelImages
from .model_report import ModelReport as ModelReport
from .model_spec import LayerSpec as LayerSpec, ModelSpec as ModelSpec
from .outcome import Frame as Frame, LayerRun as LayerRun, Outcome as Outcome
from .outcome_chart import MARGIN as MARGIN, Bar as Bar, chart as chart
from .policies import Policies as Policies
from .reports import report as report, to_table as to_table
from .rtl import Alone as Alone, RtlRunner as RtlRunner
from .runner import run_scenario as run_scenario, serve as serve
from .schema import (
    MachineSpec as MachineSpec,
    PreemptionSpec as PreemptionSpec,
    Scenario as Scenario,
    StageSpec as StageSpec,
    Stream as Stream,
    load_scenario as load_scenario,
    parse_scenario as parse_scenario,
)
from .served import Served as Served
from .synthetic import SyntheticRunner as SyntheticRunner
from .urgent import run_urgent as run_urgent
from .urgent_report import urgent_fields as urgent_fields, urgent_tables as urgent_tables
