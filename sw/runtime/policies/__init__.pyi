from .contract import (
    AcceleratorState as AcceleratorState,
    Candidate as Candidate,
    LayerCost as LayerCost,
    Operator as Operator,
    OrderPolicy as OrderPolicy,
    PlacementPolicy as PlacementPolicy,
    Release as Release,
)
from .deadline import Deadline as Deadline
from .idle_time import (
    Idle as Idle,
    IdleTime as IdleTime,
    IdleTimeTolerant as IdleTimeTolerant,
    idle_times as idle_times,
)
from .placement import (
    EarliestFinish as EarliestFinish,
    QueueTime as QueueTime,
    RoundRobinQueues as RoundRobinQueues,
    ShortestQueue as ShortestQueue,
)
from .registry import (
    ORDER as ORDER,
    PLACEMENT as PLACEMENT,
    OrderChoice as OrderChoice,
    PlacementChoice as PlacementChoice,
    PolicyObject as PolicyObject,
    by_name as by_name,
    order_maker as order_maker,
    placement_for as placement_for,
    placement_maker as placement_maker,
    policy_name as policy_name,
)
from .request_order import (
    Fcfs as Fcfs,
    Prema as Prema,
    RoundRobin as RoundRobin,
    ShortestJobFirst as ShortestJobFirst,
)
from .starvation import guarded as guarded
