from .device import Device as Device
from .errors import (
    DeviceFault as DeviceFault,
    DeviceMismatch as DeviceMismatch,
    DeviceTimeout as DeviceTimeout,
    DriverError as DriverError,
    FaultRecord as FaultRecord,
    NotSuspendable as NotSuspendable,
    OutOfEvents as OutOfEvents,
    OutOfMemory as OutOfMemory,
    SupervisorFault as SupervisorFault,
)
from .limits import BODY as BODY
from .memory.allocator import Allocator as Allocator
from .memory.ranges import LV2 as LV2, MemoryId as MemoryId, engines_of as engines_of, row_bytes as row_bytes
from .models.linked_model import LinkedModel as LinkedModel
from .models.loaded_model import LoadedModel as LoadedModel
from .models.model_jobs import SUBMIT_ACCESSES as SUBMIT_ACCESSES
from .models.program_plan import KernelUse as KernelUse, ProgramPlan as ProgramPlan, ProgramPlanner as ProgramPlanner
from .preempt.copies import (
    MAX_INSTRUCTIONS as MAX_INSTRUCTIONS,
    Program as Program,
    Spill as Spill,
    StagingBuffer as StagingBuffer,
    load as load,
    reload as reload,
    save as save,
)
from .preempt.halting import RECORD_ACCESSES as RECORD_ACCESSES, HaltRecord as HaltRecord
from .preempt.staging import LV2_COPY as LV2_COPY, PRIVATE_COPY as PRIVATE_COPY, STAGE_BYTES as STAGE_BYTES
from .preempt.suspended_tasks import room_for_dumps as room_for_dumps
from .preempt.suspension import Suspension as Suspension
from .queues.engine_queue import (
    EMPTY_ACCESSES as EMPTY_ACCESSES,
    RESET_POLL_CYCLES as RESET_POLL_CYCLES,
    RING_LOG2 as RING_LOG2,
    SERVE_ACCESSES as SERVE_ACCESSES,
)
from .queues.interrupt_wait import LOOK_AFTER as LOOK_AFTER, HandledInterrupt as HandledInterrupt
from .queues.job import (
    DeviceJob as DeviceJob,
    DmaTraffic as DmaTraffic,
    DramTraffic as DramTraffic,
    JobResult as JobResult,
)
