"""Options of the back end."""

import math
from dataclasses import dataclass

from compiler.ir import CompileError
from compiler.plan.order.search import SearchLimits
from hw.contract.params import KIB, SocParams

#: Where cancellation points lie: at intervals of the estimated time, where spilled data has reached DRAM, or both.
STRATEGIES = ("both", "intervals", "spills")

#: In which order layers come: as in the model, the best found by price, the best of all where those can be counted,
#: the best found by a longer search whose prices learn from programs that are timed (:mod:`compiler.timed_order`), or
#: the best found by compiling and measuring for a time (:mod:`compiler.measured_order`).
ORDERS = ("search", "source", "exhaustive", "timed", "measured")
#: What a compilation makes small: cycles, the bytes that pass from and to DRAM, or the LV2 that it claims.
OBJECTIVES = ("cycles", "dram", "memory")
ALL_LV2 = "all"  #: of LV2: the limit of a model that is alone
ORDERS_BY_RUNS = ("timed", "measured")  #: orders that are found by programs that run
_FEW, _ALL = 200, 100_000  #: orders of a subgraph that are tried
_PLACED = 1 << 14  #: operators of all orders of a graph that are tried, together


@dataclass(frozen=True)
class Options:
    """The options of the compiler say what a model is compiled for.

    Each but the first two is also a flag of the command line, whose help is the first sentence on it here
    (``caesura/compilation.py``). Placed and observed models are not split, have no regions, and keep their order.

    ``observe``: store every operator's result in DRAM too, as a tensor of the image, so that a checker can read it.

    ``engines``: engines of the device that share each layer.

    ``placed``: run each layer on one engine, branches side by side. The run time decides which engine it is, and the
    layer waits for the layers that it reads alone.

    ``lv2_limit``: bytes of LV2 the model may use. Other models find room beside it; ``all`` is for one that is alone.
    None: the least that pays, which :mod:`compiler.search.lv2_claim` finds by the price of plans. What is behind that
    takes None for all, and 0, as plans say that were written before.

    ``split``: split operators whose tensors do not fit on chip. They become several on parts of an image, where a price
    says that it pays.

    ``regions``: let layers run side by side. Some layers then become one step of the model, with instructions that run
    side by side.

    ``order``: order of layers and regions. It is one of ``ORDERS``.

    ``objective``: what is made small. It is one of ``OBJECTIVES``. With ``memory`` a model claims the least LV2 in
    which nothing is spilled, and layers that would run side by side run one after the other.

    ``trade``: share of the cycles of the model's own order that another must save to move more bytes from and to DRAM
    than that does (1: no other may).

    ``order_seconds``: time after which the order search ends. The image is then not reproducible.

    ``cancel_interval``: cycles a pause may wait for HALTED (0: no points). Points lie a part of it apart, and long
    instructions are cut (:class:`compiler.emission.preempt.points.PointLimits`).

    ``cancel_at``: where cancellation points lie. It is one of ``STRATEGIES``.

    ``cancel_max_live``: dirty bytes that a point should not exceed (0: any). All of them would have to move.

    ``cancel_spill_bound``: bytes spilled to DRAM before a point at spills (0: none). A spill is what the compiler moved
    to DRAM for want of room on chip, and the next empty buffer after so many bytes is a point.
    """

    observe: bool = False
    engines: int = 1
    placed: bool = False
    lv2_limit: int | str | None = None
    split: bool = True
    regions: bool = True
    order: str = "search"
    objective: str = "cycles"
    trade: float = 1.0
    order_seconds: float = math.inf
    cancel_interval: int = 10_000
    cancel_at: str = "both"
    cancel_max_live: int = 0
    cancel_spill_bound: int = 64 * KIB

    @property
    def for_memory(self) -> bool:
        """Return whether the model is to claim the least LV2 in which nothing is spilled."""
        return self.objective == "memory"

    @property
    def search_limits(self) -> SearchLimits | None:
        """Return how far to search for an order; None: not at all."""
        if self.order == "source":
            return None
        few, placed = (_ALL, math.inf) if self.order == "exhaustive" else (_FEW, _PLACED)
        return SearchLimits(few=few, samples=few // 4, tries=few, seconds=self.order_seconds, placed=placed)

    def lv2_bytes(self, params: SocParams) -> int:
        """Return the bytes of LV2 that the model may use, in whole words."""
        if not isinstance(self.lv2_limit, int) or not self.lv2_limit:
            return params.lv2_bytes
        return self.lv2_limit // params.lv1_word * params.lv1_word

    def check(self, model: str, params: SocParams) -> None:
        """Raise :class:`compiler.ir.CompileError` if hardware with ``params`` cannot do what is asked."""
        if not 1 <= self.engines <= params.engines:
            raise CompileError(
                f"model {model!r}: engines must be 1 to {params.engines} on preset {params.name!r}, not {self.engines}"
            )
        if self.placed and self.engines < 2:
            raise CompileError(
                f"model {model!r}: placed layers need at least two engines to choose from, not {self.engines}; set "
                "engines, or leave placed out"
            )
        if self.order not in ORDERS:
            raise CompileError(f"model {model!r}: order must be one of {', '.join(ORDERS)}, not {self.order!r}")
        if self.objective not in OBJECTIVES:
            raise CompileError(
                f"model {model!r}: objective must be one of {', '.join(OBJECTIVES)}, not {self.objective!r}"
            )
        if not 0 <= self.trade <= 1:
            raise CompileError(f"model {model!r}: trade must be a share from 0 to 1, not {self.trade!r}")
        if self.objective != "cycles" and (self.placed or self.order != "search"):
            raise CompileError(
                f"model {model!r}: objective {self.objective!r} chooses the order of layers: leave out order and placed"
            )
        if self.cancel_at not in STRATEGIES:
            raise CompileError(
                f"model {model!r}: cancel_at must be one of {', '.join(STRATEGIES)}, not {self.cancel_at!r}"
            )
        named = isinstance(self.lv2_limit, str)
        if (named and self.lv2_limit != ALL_LV2) or not 0 < self.lv2_bytes(params) <= params.lv2_bytes:
            raise CompileError(
                f"model {model!r}: lv2_limit must be {params.lv1_word} to {params.lv2_bytes} bytes on preset "
                f"{params.name!r}, or {ALL_LV2!r}, not {self.lv2_limit!r}"
            )
