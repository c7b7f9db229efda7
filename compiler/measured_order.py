"""Orders of layers that are compiled and measured, instead of priced (**Order search**)."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from compiler import ir
from compiler.backend.objects.object_store import ObjectStore
from compiler.backend.options import Options
from compiler.backend.pipeline import build
from compiler.backend.report import CompileReport
from compiler.order.graph import Order, OrderGraph, Price
from compiler.order.greedy import greedy_order
from compiler.order.moves import random_move
from hw.contract.image import Image
from hw.contract.params import SocParams

Measure = Callable[[Image], float]  #: cycles of an inference
Told = Callable[[int, float], None]  #: called with the number of programs measured and the fewest cycles
_LONGEST_STEP = 3  #: moves from the best order to the next that is tried
_STALE = 100  #: steps to known orders after which there is nothing more to find


class MeasuredBuild(NamedTuple):
    """The program with the fewest cycles. ``priced``: cycles of the one that the search by price chose; ``tried``: how
    many were compiled and measured."""

    image: Image
    report: CompileReport
    cycles: float
    priced: float
    tried: int


def build_measured(
    graph: ir.Graph, params: SocParams, options: Options, measure: Measure, seconds: float, told: Told | None = None,
    *, seed: int = 0, jobs: int | None = None, store: ObjectStore | None = None,
) -> MeasuredBuild:  # fmt: skip
    """``graph`` compiled in the order found by price, in the greedy and in the source order, then in orders near the
    best of them, until ``seconds`` have passed; the one wins that ``measure`` says takes least. One compilation may
    end late. ``jobs``, ``store``: see :func:`compiler.backend.pipeline.build`. Raises
    :class:`compiler.ir.CompileError`."""
    compile_in = partial(build, graph, params, jobs=jobs, store=store)
    return _Measuring(compile_in, options, measure, told, random.Random(seed)).run(time.monotonic() + seconds)


class _Measuring:
    """Programs of one model, each with the orders of its runs of layers between two on the CPU."""

    def __init__(
        self, compile_in: Callable[..., tuple[Image, CompileReport]], options: Options, measure: Measure,
        told: Told | None, rng: random.Random,
    ) -> None:  # fmt: skip
        self._compile_in, self._options = compile_in, options
        self._measure, self._told, self._rng = measure, told, rng
        self._operators: list[OrderGraph] = []
        self._known: dict[tuple[Order, ...], float] = {}

    def run(self, ends: float) -> MeasuredBuild:
        """See :func:`build_measured`."""
        found: list[Order] = []

        def note(operators: OrderGraph, _: Price, order: Order) -> Order:
            self._operators.append(operators)
            found.append(order)
            return order

        image, report = self._compile_in(self._options, choose_order=note)
        orders = tuple(found)
        priced = self._known[orders] = self._measure(image)
        best = MeasuredBuild(image, report, priced, priced, 1)
        if self._told:
            self._told(1, priced)
        firsts = [tuple(map(greedy_order, self._operators)), tuple(one.source for one in self._operators)]
        stale = 0
        while time.monotonic() < ends and stale < _STALE:
            candidate = firsts.pop(0) if firsts else self._near(orders)
            stale += 1
            if candidate in self._known:
                continue
            made = self._made(candidate)
            if made.cycles < best.cycles:
                best, orders = made._replace(priced=priced), candidate
            stale = 0
            if self._told:
                self._told(len(self._known), best.cycles)
        return best._replace(tried=len(self._known), report=replace(best.report, orders=report.orders))

    def _near(self, orders: tuple[Order, ...]) -> tuple[Order, ...]:
        moved = list(orders)
        for _ in range(self._rng.randint(1, _LONGEST_STEP)):
            run = self._rng.randrange(len(moved)) if moved else 0
            if moved:
                moved[run] = random_move(self._operators[run], moved[run], self._rng)
        return tuple(moved)

    def _made(self, orders: tuple[Order, ...]) -> MeasuredBuild:
        given = iter(orders)

        def choose(_: OrderGraph, __: Price, ___: Order) -> Order:
            return next(given)

        image, report = self._compile_in(replace(self._options, order="source"), choose_order=choose)
        cycles = self._known[orders] = self._measure(image)
        return MeasuredBuild(image, report, cycles, cycles, 1)
