"""Scheduling policies are made by name. Each is one small class with one decision method, as ``contract`` describes.

The order of layers: ``fcfs``, ``round_robin``, ``sjf``, ``idle_time``, ``idle_time_tolerant``, ``deadline``,
``prema``. The placement of operators in engine queues: ``shortest_queue``, ``round_robin_queues``, ``earliest_finish``,
``queue_time``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
