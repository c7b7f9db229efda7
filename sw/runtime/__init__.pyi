from . import metrics as metrics, reference as reference
from .batched_steps import BatchedStep as BatchedStep
from .conversation import (
    Conversation as Conversation,
    counts_steps as counts_steps,
    most_steps as most_steps,
    step_ports as step_ports,
)
from .conversation_batch import (
    BatchedConversation as BatchedConversation,
    ConversationBatch as ConversationBatch,
    batch_places as batch_places,
    single_ports as single_ports,
)
from .device_queues import Engines as Engines, least_busy as least_busy, queue_times as queue_times
from .fleet import (
    Fleet as Fleet,
    FleetModel as FleetModel,
    FleetRequest as FleetRequest,
    ModelOnDevices as ModelOnDevices,
)
from .forecast import Estimates as Estimates, Forecast as Forecast
from .layer_graph import LayerGraph as LayerGraph
from .layer_runner import LayerExecutor as LayerExecutor, LayerRunner as LayerRunner
from .model_data import InputError as InputError, by_name as by_name, to_array as to_array
from .past_durations import (
    MeasuredLayer as MeasuredLayer,
    PastDurations as PastDurations,
    past_of as past_of,
)
from .preemption_mechanism import Mechanism as Mechanism, Situation as Situation, choose as choose
from .reference import Durations as Durations, durations as durations, measured as measured
from .request import (
    DeadlineMissed as DeadlineMissed,
    GroupRun as GroupRun,
    Inputs as Inputs,
    Request as Request,
    RequestCancelled as RequestCancelled,
    State as State,
)
from .request_runner import RequestRunner as RequestRunner
from .runtime import Runtime as Runtime
from .scheduler import (
    Decision as Decision,
    LayerChain as LayerChain,
    LayerScheduler as LayerScheduler,
    PolicyFailed as PolicyFailed,
)
from .session import Arrays as Arrays, Session as Session
from .snapshot import (
    EngineNow as EngineNow,
    RequestNow as RequestNow,
    Snapshot as Snapshot,
    name_of as name_of,
    take_snapshot as take_snapshot,
)
from .spans import RunSpan as RunSpan
from .stats import LayerStats as LayerStats, RunStats as RunStats
from .taking_turns import turns_taken as turns_taken
