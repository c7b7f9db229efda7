from . import policies as policies
from .api import (
    Arrays as Arrays,
    Device as Device,
    Model as Model,
    UsageError as UsageError,
    compile as compile,
    open as open,
    resolve as resolve,
    run as run,
)
from .certificate.certificate import Certificate as Certificate, admit as admit
from .certificate.promised_run import PromiseRefused as PromiseRefused
from .checks import check as check
from .exports import (
    PRESETS as PRESETS,
    BusError as BusError,
    BusTimeout as BusTimeout,
    CompileError as CompileError,
    DeadlineMissed as DeadlineMissed,
    DeviceFault as DeviceFault,
    DeviceTimeout as DeviceTimeout,
    DriverError as DriverError,
    Fleet as Fleet,
    HostCosts as HostCosts,
    Image as Image,
    ImageError as ImageError,
    InputError as InputError,
    LayerStats as LayerStats,
    Mechanism as Mechanism,
    NoKernelError as NoKernelError,
    Options as Options,
    ParamError as ParamError,
    Request as Request,
    RequestCancelled as RequestCancelled,
    RunStats as RunStats,
    Runtime as Runtime,
    SocParams as SocParams,
    State as State,
    user_errors as user_errors,
)
from .inference_session import (
    InferenceSession as InferenceSession,
    get_available_providers as get_available_providers,
)
from .latency import latency_bound as latency_bound
from .lengths.dynamic_model import dynamic as dynamic
from .lengths.operation_model import by_operation as by_operation
from .machines import machine as machine
from .model_cycles import layer_cycles as layer_cycles
from .profiles import LayerProfile as LayerProfile, Profile as Profile, profile as profile
from .samples import Sample as Sample, load_samples as load_samples, random_samples as random_samples
from .scenario.runner import serve as serve
from .scenario.served import Served as Served
from .session_options import (
    ExecutionMode as ExecutionMode,
    GraphOptimizationLevel as GraphOptimizationLevel,
    RunOptions as RunOptions,
    SessionOptions as SessionOptions,
)
from .steps_on_cpu import ImageCpuStep as ImageCpuStep, cpu_steps as cpu_steps
from .version import __version__ as __version__
