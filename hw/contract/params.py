"""Defines the structural parameters of the accelerator, their presets, and what follows from them.

One frozen dataclass holds every number that shapes the hardware. The RTL, the compiler, the simulators and
the image format read it; nothing else defines a size.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass

from hw.contract.html_table import html_table
from hw.contract.isa import INSN_BYTES, VEC_CHANNEL_BYTES

KIB = 1024
MIB = 1024 * KIB


MIN_DRAM_LATENCY = 4  #: cycles a request takes through the controller's queue
#: Fields that describe the memory outside the chip alone: the hardware is the same for all their values.
DRAM_TIMING = ("dram_latency", "dram_row_miss", "dram_bandwidth")


class ParamError(ValueError):
    """Says why no hardware can be built for a parameter set; names field, value, limit and way out."""


def _is_pow2(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, repr=False)
class SocParams:
    """Holds everything that shapes one SoC. Sizes are bytes unless the name says otherwise.

    Derived widths (see the properties) keep bandwidth in step with the number of MACs: the LV1 and LV2 word is
    ``pes * rows`` bytes, one activation word for every PE.
    """

    name: str = "custom"
    engines: int = 1  #: PE clusters, each with its own queue and sequencers
    pes: int = 2  #: processing elements per engine
    rows: int = 4  #: MAC array rows = input channels per cycle and PE
    cols: int = 4  #: MAC array columns = output channels per PE; equals ``rows``
    vec_lanes: int = 4  #: vector lanes per engine, a multiple of ``cols`` and at most ``pes * cols``
    lv0_act_bytes: int = 2 * KIB  #: activation memory per PE, both halves of the double buffer
    lv0_wgt_bytes: int = 1 * KIB  #: weight memory per PE, both halves of the double buffer
    lv0_acc_rows: int = 64  #: accumulator rows per PE over both banks; one row is ``cols`` int32
    lv1_bytes: int = 16 * KIB  #: scratchpad per engine
    lv1_banks: int = 2  #: word-interleaved banks of LV1
    lv2_bytes: int = 128 * KIB  #: scratchpad shared by all engines
    lv2_banks: int = 4  #: word-interleaved banks of LV2
    dram_bytes: int = 4 * MIB  #: size of the simulated DRAM
    dram_word: int = 8  #: bytes per beat of the AXI4 data bus = most DRAM bytes per cycle
    dram_latency: int = 40  #: cycles from read address to first data on a row-buffer hit
    dram_row_bytes: int = 2 * KIB  #: row-buffer size of one DRAM bank
    dram_banks: int = 8  #: DRAM banks
    dram_row_miss: int = 20  #: extra cycles when another row must be opened
    dram_bandwidth: int = 100  #: percent of ``dram_word`` bytes per cycle that the DRAM moves
    dram_refresh_interval: int = 7800  #: cycles between refreshes
    dram_refresh_cycles: int = 280  #: cycles the DRAM is closed for one refresh
    axi_burst_beats: int = 16  #: longest burst the masters issue
    axi_outstanding: int = 8  #: read bursts one LV2 load unit keeps in flight
    unit_queue_depth: int = 4  #: instructions waiting per unit queue
    job_slots: int = 4  #: job descriptors an engine holds: the job that runs, and those whose prologues run ahead
    semaphores: int = 32  #: counting semaphores per engine
    semaphore_max: int = 255  #: largest count; one more is a fault
    events: int = 32  #: SoC-wide event counters

    def __repr__(self) -> str:
        """Return in a line what a machine is; its fields, and :meth:`to_dict`, have all of it."""
        return (
            f"<SocParams {self.name!r}: engines {self.engines}, {self.macs:,} MACs per cycle, LV2 "
            f"{self.lv2_bytes // KIB:,} KiB, DRAM {self.dram_bytes_per_cycle:g} bytes per cycle>"
        )

    def _repr_html_(self) -> str:
        """Return a table of all parameters, as notebooks show it."""
        return html_table(self, ("parameter", "value"), self.to_dict().items())

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ParamError(f"parameters {self.name!r}: {problem}")

    def _problems(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                yield f"{field.name} must be a positive integer, not {value!r}"
        for name in (
            "pes", "rows", "vec_lanes", "lv0_act_bytes", "lv0_wgt_bytes", "lv0_acc_rows", "lv1_bytes",
            "lv1_banks", "lv2_bytes", "lv2_banks", "dram_bytes", "dram_word", "dram_row_bytes", "dram_banks",
            "axi_burst_beats", "axi_outstanding", "unit_queue_depth", "job_slots", "events",
        ):  # fmt: skip
            if not _is_pow2(getattr(self, name)):
                yield f"{name} must be a power of two, not {getattr(self, name)}"
        if self.cols != self.rows:
            yield f"cols must equal rows ({self.rows}), not {self.cols}: choose a square array"
        if self.rows not in (4, 8, 16):
            yield f"rows must be 4, 8 or 16, not {self.rows}"
        if self.vec_lanes % self.cols or self.vec_lanes > self.pes * self.cols:
            limits = f"a multiple of cols ({self.cols}) up to pes*cols ({self.pes * self.cols})"
            yield f"vec_lanes must be {limits}, not {self.vec_lanes}"
        if not 8 <= self.lv1_word <= 128:
            yield f"pes*rows is the LV1 word and must be 8 to 128 bytes, not {self.lv1_word}"
        if not 8 <= self.dram_word <= min(self.lv1_word, INSN_BYTES):
            # The fetch assembles an instruction from whole beats; a wide word of LV2 from whole beats, too.
            limits = f"8 to pes*rows ({self.lv1_word}) and at most {INSN_BYTES} (one instruction) bytes"
            yield f"dram_word must be {limits}, not {self.dram_word}"
        if self.lv1_word > VEC_CHANNEL_BYTES * self.vec_lanes:
            # The parameter loader takes the entries of one group of lanes as whole LV1 words.
            limit = f"at least pes*rows/{VEC_CHANNEL_BYTES} ({self.lv1_word // VEC_CHANNEL_BYTES})"
            yield f"vec_lanes must be {limit}, not {self.vec_lanes}"
        if not 1 <= self.engines <= 8:
            yield f"engines must be 1 to 8, not {self.engines}"
        for name, low, high in (
            ("lv0_act_bytes", 2 * self.lv1_word, 512 * KIB), ("lv0_wgt_bytes", 2 * self.lv1_word, 512 * KIB),
            ("lv0_acc_rows", 16, 4096), ("lv1_bytes", 4 * KIB, 512 * KIB), ("lv2_bytes", 16 * KIB, 16 * MIB),
            ("dram_bytes", 64 * KIB, 1024 * MIB), ("axi_burst_beats", 4, 256), ("axi_outstanding", 1, 64),
            ("semaphores", 16, 32), ("semaphore_max", 3, 255), ("events", 4, 64), ("unit_queue_depth", 1, 16),
            ("job_slots", 2, 64), ("dram_latency", MIN_DRAM_LATENCY, 0xFFFF), ("dram_row_miss", 1, 0xFFFF),
            ("dram_bandwidth", 1, 100),
        ):  # fmt: skip
            if not low <= getattr(self, name) <= high:
                yield f"{name} must be {low} to {high}, not {getattr(self, name)}"
        if self.dram_refresh_cycles >= self.dram_refresh_interval:
            limit = f"less than dram_refresh_interval ({self.dram_refresh_interval})"
            yield f"dram_refresh_cycles must be {limit}, not {self.dram_refresh_cycles}"
        if self.dram_refresh_interval > 1 << 30:
            yield f"dram_refresh_interval must be at most {1 << 30}, not {self.dram_refresh_interval}"
        if not self.dram_word <= self.dram_row_bytes <= 1 << 20 or self.dram_banks > 1024:
            rows = f"dram_row_bytes must be dram_word ({self.dram_word}) to {1 << 20}"
            yield f"{rows} and dram_banks at most 1024, not {self.dram_row_bytes} and {self.dram_banks}"
        if self.axi_burst_beats * self.dram_word > 4096:
            burst = self.axi_burst_beats * self.dram_word
            yield f"axi_burst_beats * dram_word must stay within a 4 KiB page, not {burst}"

    # -- derived sizes ---------------------------------------------------------------------------------------
    @property
    def lv1_word(self) -> int:
        """Return the bytes of one LV1 and of one LV2 word (W): one ``rows``-byte activation word for each PE."""
        return self.pes * self.rows

    @property
    def lv0_banks(self) -> int:
        """Return the banks of one LV0 memory, each ``rows`` bytes wide; a full LV1 word enters in one cycle."""
        return self.pes

    @property
    def depthwise_taps(self) -> int:
        """Return the kernel columns that a block of a depthwise convolution covers. Each takes a word from a bank, and
        a row of the array."""
        return min(self.lv0_banks, self.rows)

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates per cycle of all engines."""
        return self.engines * self.pes * self.rows * self.cols

    @property
    def lv0_bytes(self) -> int:
        """Return the bytes of all LV0 memories of all engines, accumulators included."""
        accumulators = 4 * self.lv0_acc_rows * self.cols
        return self.engines * self.pes * (self.lv0_act_bytes + self.lv0_wgt_bytes + accumulators)

    @property
    def onchip_bytes(self) -> int:
        """Return the bytes of LV0, LV1 and LV2 of the whole machine."""
        return self.lv0_bytes + self.engines * self.lv1_bytes + self.lv2_bytes

    @property
    def unit_room(self) -> int:
        """Return the instructions that wait for a unit at most: those of its queue, and one at its head."""
        return self.unit_queue_depth + 1

    @property
    def job_slot_bits(self) -> int:
        """Return the low bits of a job's index that name its slot."""
        return (self.job_slots - 1).bit_length()

    @property
    def out_channels(self) -> int:
        """Return how many output channels one engine computes side by side (``pes * cols``)."""
        return self.pes * self.cols

    @property
    def vec_groups(self) -> int:
        """Return how many vectors of ``vec_lanes`` cover the output channels of an engine."""
        return self.out_channels // self.vec_lanes

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Return the bytes the DRAM moves per cycle, refresh and opening of rows left out."""
        return self.dram_word * self.dram_bandwidth / 100

    @property
    def vec_header_bytes(self) -> int:
        """Return the bytes of the scalar header of a VEC parameter block (see ``hw.contract.isa.VEC_HEADER``)."""
        return max(32, self.lv1_word)

    def replace(self, **changes) -> "SocParams":
        """Return a copy with some fields changed; unknown names raise :class:`ParamError`."""
        known = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise ParamError(f"no parameter named {name!r}; known are {', '.join(sorted(known))}")
        return dataclasses.replace(self, **changes)

    def with_nominal_dram(self) -> "SocParams":
        """Return a copy with the defaults of ``DRAM_TIMING``: equal copies may share one simulator, which takes the
        three values when it runs."""
        nominal = {field.name: field.default for field in dataclasses.fields(self) if field.name in DRAM_TIMING}
        return self.replace(**nominal)

    def to_dict(self) -> dict:
        """Return the plain fields, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: dict) -> "SocParams":
        """Return the inverse of :meth:`to_dict`; unknown or missing names raise :class:`ParamError`."""
        known = {field.name for field in dataclasses.fields(cls)}
        if set(fields) != known:
            odd = ", ".join(sorted(set(fields) ^ known))
            raise ParamError(f"parameter fields do not match this version: {odd}")
        return cls(**fields)

    def digest(self) -> str:
        """Return a hex digest over every field but the name and ``DRAM_TIMING``: equal digests mean interchangeable
        images.

        ``dram_latency``, ``dram_row_miss`` and ``dram_bandwidth`` are properties of the memory outside the chip: an
        image runs on any of them, with the same results. What the compiler estimated and bounded in cycles (durations,
        intervals between cancellation points) holds for the values that it was compiled for.
        """
        fields = {k: v for k, v in self.to_dict().items() if k not in ("name", *DRAM_TIMING)}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


PRESETS = {
    preset.name: preset
    for preset in (
        SocParams(
            name="nano", vec_lanes=4, lv0_acc_rows=32, lv1_banks=1, lv2_bytes=32 * KIB, lv2_banks=1,
            axi_outstanding=4, unit_queue_depth=1, job_slots=2, events=8,
        ),
        SocParams(name="tiny", vec_lanes=8),
        SocParams(
            name="ecp5", pes=2, rows=8, cols=8, vec_lanes=8, lv0_act_bytes=4 * KIB, lv0_wgt_bytes=2 * KIB,
            lv0_acc_rows=128, lv1_bytes=32 * KIB, lv2_bytes=128 * KIB, lv2_banks=2, dram_word=8, dram_bytes=64 * MIB,
            unit_queue_depth=1,
        ),
        SocParams(
            name="base", engines=2, pes=4, rows=8, cols=8, vec_lanes=16, lv0_act_bytes=16 * KIB,
            lv0_wgt_bytes=4 * KIB, lv0_acc_rows=256, lv1_bytes=128 * KIB, lv1_banks=4, lv2_bytes=2 * MIB,
            lv2_banks=8, dram_bytes=128 * MIB, dram_word=16, dram_latency=100, axi_outstanding=16, job_slots=16,
        ),
        SocParams(
            name="cluster64", engines=8, pes=8, rows=8, cols=8, vec_lanes=32, lv0_act_bytes=16 * KIB,
            lv0_wgt_bytes=4 * KIB, lv0_acc_rows=256, lv1_bytes=256 * KIB, lv1_banks=4, lv2_bytes=8 * MIB,
            lv2_banks=32, dram_bytes=128 * MIB, dram_word=64, dram_latency=100, axi_outstanding=16, job_slots=8,
        ),
    )
}  # fmt: skip


def preset(name: str) -> SocParams:
    """Return the preset called ``name``; an unknown name raises :class:`ParamError` with the list of known ones."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ParamError(f"no preset named {name!r}; known are {', '.join(PRESETS)}") from None
