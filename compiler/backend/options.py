"""Options of the back end and what it reports about a compilation."""

from dataclasses import dataclass, field

from hw.contract.params import KIB


@dataclass(frozen=True)
class Options:
    """``observe``: every operator's result also goes to DRAM, as a tensor of the image, so that a checker can read it.
    ``engines``: engines of the device that share each layer. ``lv2_limit``: bytes of LV2 the model may use (0: all),
    so that another model finds room beside it.

    ``cancel_interval``: cycles a pause should wait for HALTED at most (0: no points): points lie a part of it apart,
    and long instructions are cut (:class:`compiler.backend.preempt.points.Wanted`). ``cancel_max_live``: dirty
    bytes of LV0, LV1 and buffers in LV2 that a point should not exceed (0: any), ``cancel_spill_bound``: bytes on their
    way to DRAM after which the next empty spill buffer is a point as well (0: none is).
    """

    observe: bool = False
    engines: int = 1
    lv2_limit: int = 0
    cancel_interval: int = 10_000
    cancel_max_live: int = 0
    cancel_spill_bound: int = 64 * KIB


@dataclass
class LayerReport:
    """How one layer was compiled. ``homes``: memories of inputs and output; ``tile``: shape of its tiles."""

    name: str
    kind: str
    jobs: int
    tile: str
    homes: str
    macs: int
    instructions: int
    weight_bytes: int
    estimated_cycles: int


@dataclass
class CompileReport:
    """What the compiler did with a model."""

    model: str
    layers: list[LayerReport] = field(default_factory=list)
    segment_sizes: list[int] = field(default_factory=list)
    dram_bytes: int = 0
    lv2_bytes: int = 0

    @property
    def jobs(self) -> int:
        """Jobs of one inference."""
        return sum(layer.jobs for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(layer.macs for layer in self.layers)

    @property
    def estimated_cycles(self) -> int:
        """Estimated cycles of all bodies, one after the other."""
        return sum(layer.estimated_cycles for layer in self.layers)
