from . import c_library as c_library
from .backends import (
    BACKENDS as BACKENDS,
    BACKENDS_HELP as BACKENDS_HELP,
    DEFAULT_BACKEND as DEFAULT_BACKEND,
    MODEL as MODEL,
    RTL_BACKENDS as RTL_BACKENDS,
)
from .cache_folder import (
    BoundedFolder as BoundedFolder,
    ForeignCacheError as ForeignCacheError,
    cache_dir as cache_dir,
    read_kept as read_kept,
    sources_digest as sources_digest,
    write_kept as write_kept,
)
from .instruction_runs import InstructionRun as InstructionRun, save_runs as save_runs
from .short_names import distinct_names as distinct_names, shortened as shortened
from .simulators import (
    NoRecording as NoRecording,
    NoWaveforms as NoWaveforms,
    open_recorded as open_recorded,
    open_simulator as open_simulator,
)
from .trace import Counter as Counter, Span as Span, write_trace as write_trace
from .visible_text import visible as visible
