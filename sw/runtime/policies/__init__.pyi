from .contract import (
    AcceleratorState as AcceleratorState,
    Candidate as Candidate,
    LayerCost as LayerCost,
    Operator as Operator,
    OrderPolicy as OrderPolicy,
    PlacementPolicy as PlacementPolicy,
    Release as Release,
)
from .idle_time import Idle as Idle, IdleTime as IdleTime, idle_times as idle_times
from .placement import QueueTime as QueueTime
from .registry import ORDER as ORDER, PLACEMENT as PLACEMENT, by_name as by_name, placement_for as placement_for
from .request_order import Fcfs as Fcfs
