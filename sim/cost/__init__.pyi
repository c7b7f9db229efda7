from .backlog import Counts as Counts, issued as issued
from .body_bound import (
    completion_cycles as completion_cycles,
    dram_service as dram_service,
    stretches as stretches,
    whole_bodies as whole_bodies,
)
from .bound import Bounds as Bounds, set_bounds as set_bounds, worst_intervals as worst_intervals
from .dram import (
    WorstDram as WorstDram,
    load_cycles as load_cycles,
    moved as moved,
    prologue_cycles as prologue_cycles,
    tile_load_cycles as tile_load_cycles,
)
from .exact.decoded import DecodedCode as DecodedCode
from .exact.program import forget_decoded as forget_decoded
from .overheads import (
    BODY_TO_BODY as BODY_TO_BODY,
    HIDDEN as HIDDEN,
    JOB_START as JOB_START,
    LAYER_TO_FULL_WORK as LAYER_TO_FULL_WORK,
    LAYER_TO_LOAD as LAYER_TO_LOAD,
    LAYER_TO_RESULT as LAYER_TO_RESULT,
    SHORT_RUN as SHORT_RUN,
    TILE_START as TILE_START,
    UNIT_START as UNIT_START,
)
from .prediction import Prediction as Prediction, inference as inference
from .region_time import RegionMember as RegionMember, side_by_side_cycles as side_by_side_cycles
from .rivals import CountedOthers as CountedOthers, Others as Others, Rivals as Rivals
from .schedule import QueuedTasks as QueuedTasks
from .shapes import (
    MacShape as MacShape,
    VecShape as VecShape,
    essence_of as essence_of,
    essential as essential,
)
from .units import (
    contended_cycles as contended_cycles,
    insn_cycles as insn_cycles,
    overlapped as overlapped,
    work_cycles as work_cycles,
)
