from . import frames as frames
from .contained import (
    DEFAULT_LIMITS as DEFAULT_LIMITS,
    ContainedModels as ContainedModels,
    HostLimits as HostLimits,
    HostModelError as HostModelError,
    HostStepError as HostStepError,
)
from .contained_process import ContainedProcess as ContainedProcess
from .cost import HostWork as HostWork, work_of as work_of
from .onnx_models import all_tensors as all_tensors
from .onnx_session import (
    HostSession as HostSession,
    run_host as run_host,
    session as session,
    session_options as session_options,
)
from .worker import confine as confine, end_after as end_after
