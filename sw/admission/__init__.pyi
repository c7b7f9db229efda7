from .abstract_machine import AbstractMachine as AbstractMachine, Arrival as Arrival, ServedRequest as ServedRequest
from .delays import Delays as Delays
from .phase_search import (
    ReleaseTimes as ReleaseTimes,
    StormRun as StormRun,
    WorstStorm as WorstStorm,
    run_storm as run_storm,
    worst_phases as worst_phases,
)
from .response_time import (
    Admission as Admission,
    Interference as Interference,
    Response as Response,
    responses as responses,
)
from .streams import RequestStream as RequestStream, WorkPiece as WorkPiece
from .token_bucket import TokenBucket as TokenBucket
