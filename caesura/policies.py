"""Scheduling policies: those that there are, and what one of your own is told and answers.

>>> from caesura.policies import AcceleratorState, Candidate, OrderPolicy
>>> class LeastMemory(OrderPolicy):
...     def choose(self, state, candidates):
...         return min(candidates, key=lambda c: (c.cost.bytes, c.arrival, c.request))
>>> runtime = caesura.Runtime(device, LeastMemory)

``caesura.Runtime``, ``caesura.Fleet`` and ``caesura.serve`` take a policy by name, as a class or as an object,
``caesura scenario --policy`` as ``module:Class`` or ``file.py:Class``. ``ORDER`` and ``PLACEMENT`` say which names
there are.
"""

from sw.runtime.policies import (
    ORDER as ORDER,
    PLACEMENT as PLACEMENT,
    AcceleratorState as AcceleratorState,
    Candidate as Candidate,
    Deadline as Deadline,
    EarliestFinish as EarliestFinish,
    Fcfs as Fcfs,
    Idle as Idle,
    IdleTime as IdleTime,
    IdleTimeTolerant as IdleTimeTolerant,
    LayerCost as LayerCost,
    Operator as Operator,
    OrderPolicy as OrderPolicy,
    PlacementPolicy as PlacementPolicy,
    Prema as Prema,
    QueueTime as QueueTime,
    Release as Release,
    RoundRobin as RoundRobin,
    RoundRobinQueues as RoundRobinQueues,
    ShortestJobFirst as ShortestJobFirst,
    ShortestQueue as ShortestQueue,
    by_name as by_name,
    guarded as guarded,
    idle_times as idle_times,
    placement_for as placement_for,
)
