"""The price of an order by the order alone: cycles on three units that run side by side, and what spilling costs."""

from dataclasses import dataclass, field

from compiler import Order, OrderGraph, members, peak_bytes, spills, total_bytes


@dataclass(frozen=True)
class ChipModel:
    """What a chip does to an order.

    ``tile`` is the part of an operator after which its reader on another unit may begin, and which the reader has left
    when its operand is complete: 1.0 means after the whole. Operators are issued in order: one does not begin to work
    before the operator ``window`` places earlier has begun, nor to load before the one ``ahead`` places earlier has.
    """

    on_chip_bytes: int
    dram_bytes_per_cycle: float
    tile: float = 1.0
    window: int = 1
    ahead: int = 8

    def __post_init__(self) -> None:
        for name, low in (("on_chip_bytes", 0), ("dram_bytes_per_cycle", 0.0)):
            if getattr(self, name) <= low:
                raise ValueError(f"{name} of a chip model must be more than {low}, not {getattr(self, name)}")
        if not 0 < self.tile <= 1:
            raise ValueError(f"tile of a chip model must be above 0 and at most 1, not {self.tile}")
        if min(self.window, self.ahead) < 1:
            raise ValueError(f"window and ahead of a chip model must be 1 or more, not {self.window} and {self.ahead}")


@dataclass(frozen=True)
class OrderTimeline:
    """What becomes of an order: cycles until the last operator has ended, the most bytes alive at a time if nothing is
    spilled, bytes that go to DRAM and come back because they do not fit, and who works when."""

    cycles: float
    peak_bytes: int
    spilled_bytes: int
    spans: list["OperatorSpan"] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class OperatorSpan:
    """An operator on a unit (``load``, ``matrix`` or ``vector``), in cycles."""

    operator: int
    unit: str
    begin: float
    end: float


class OrderPrice:
    """The price of the orders of ``graph`` on ``chip``, without a program.

    Each unit takes the operators in order and runs beside the others. An operator begins to compute when its data are
    loaded and its operands there, tile by tile where the chip does that; its vector part follows its matrix part. What
    does not fit on chip is spilled: the load unit, which owns the port to DRAM, pays for the way out and back.
    """

    def __init__(self, graph: OrderGraph, chip: ChipModel) -> None:
        self.graph, self.chip = graph, chip
        self._producers = [tuple(members(mask)) for mask in graph.predecessors]
        self._fits = total_bytes(graph) <= chip.on_chip_bytes  # in any order

    def __call__(self, order: Order) -> float:
        return self._walk(order, None)[0]

    def timeline(self, order: Order) -> OrderTimeline:
        """Return all about one order."""
        spans: list[OperatorSpan] = []
        cycles, spilled = self._walk(order, spans)
        return OrderTimeline(cycles, peak_bytes(self.graph, order), spilled, spans)

    def _walk(self, order: Order, spans: list[OperatorSpan] | None) -> tuple[float, int]:
        """Return the cycles and bytes spilled; notes in ``spans`` who works when."""
        graph, chip = self.graph, self.chip
        tile, bandwidth, window, ahead = chip.tile, chip.dram_bytes_per_cycle, chip.window, chip.ahead
        traffic = [] if self._fits else spills(graph, order, chip.on_chip_bytes)
        begun: list[float] = []  # by position
        first, ended = [0.0] * len(order), [0.0] * len(order)  # by operator: first tile, last tile
        load_free = matrix_free = vector_free = 0.0
        for position, number in enumerate(order):
            node = graph.operators[number]
            there = complete = 0.0
            for producer in self._producers[number]:
                there = max(there, first[producer])
                complete = max(complete, ended[producer])
            load = node.load + (traffic[position] / bandwidth if traffic else 0.0)
            if load:
                begin = max(load_free, begun[position - ahead] if position >= ahead else 0.0)
                load_free = begin + load
                there, complete = max(there, begin + tile * load), max(complete, load_free)
                if spans is not None:
                    spans.append(OperatorSpan(number, "load", begin, load_free))
            start = there = max(there, begun[position - window] if position >= window else 0.0)
            if node.matrix:
                start = max(there, matrix_free)
                matrix_free = max(start + node.matrix, complete + tile * node.matrix)
                there, complete = start + tile * node.matrix, matrix_free
                if spans is not None:
                    spans.append(OperatorSpan(number, "matrix", start, matrix_free))
            if node.vector:
                begin = max(there, vector_free)
                start = start if node.matrix else begin
                vector_free = max(begin + node.vector, complete + tile * node.vector)
                there, complete = begin + tile * node.vector, vector_free
                if spans is not None:
                    spans.append(OperatorSpan(number, "vector", begin, vector_free))
            begun.append(start)
            first[number], ended[number] = there, complete
        return max([load_free, *ended]), sum(traffic)
