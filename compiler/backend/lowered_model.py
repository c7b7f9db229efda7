"""Defines a model as it is before its layers are ordered: what studies, searches and plans are about."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compiler import ir
from compiler.backend.layers.layer import Layer
from compiler.backend.options import Options
from compiler.backend.order.region_beam import QUICK, WIDE
from compiler.backend.order.regions import Orders, Study
from compiler.backend.order.side_by_side import side_by_side
from compiler.backend.prepare import prepared
from compiler.backend.split.choose import cuts_that_pay, with_cuts
from compiler.order.report import OrderReport
from compiler.plan.plan import Plan
from compiler.plan.plan_error import PlanError
from compiler.plan.rewrites import ImageCut, Rewrite
from compiler.plan.steps import layer_names
from compiler.plan.structure import structure_of
from hw.contract.params import SocParams


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles of objects: a compilation keeps nearly all that it makes until its end, and to look through
    it again and again takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True)
class LoweredModel:
    """Holds what a model is compiled from: ``layers`` of a ``graph`` that ``rewrites`` have made of one with this
    ``structure``, before any is joined to others."""

    graph: ir.Graph
    layers: list[Layer]
    structure: str
    params: SocParams
    options: Options
    rewrites: tuple[Rewrite, ...]

    @classmethod
    @uncollected()
    def of(cls, graph: ir.Graph, params: SocParams, options: Options) -> "LoweredModel":
        """Return the layers of ``graph``, rewritten where that pays. Raises :class:`compiler.ir.CompileError`."""
        options.check(graph.name, params)
        structure, cuts = structure_of(graph), cuts_that_pay(graph, params, options)
        made = prepared(with_cuts(graph, cuts), params, options)
        return cls(made.graph, made.layers, structure, params, options, (*cuts, *made.rewrites))

    @classmethod
    @uncollected()
    def planned(cls, graph: ir.Graph, plan: Plan) -> "LoweredModel":
        """Return the layers of ``graph``, rewritten as ``plan`` says. Raises :class:`PlanError` if the plan is for
        another model."""
        if plan.structure != structure_of(graph):
            raise PlanError(f"model {graph.name!r}: the plan is for another model, {plan.model!r}")
        plan.options.check(graph.name, plan.params)
        graph = with_cuts(graph, [one for one in plan.rewrites if isinstance(one, ImageCut)])
        made = prepared(graph, plan.params, plan.options, plan.rewrites)
        if layer_names(made.layers) != plan.layers:
            raise PlanError(f"model {graph.name!r}: its layers are not those of the plan")
        return cls(made.graph, made.layers, plan.structure, plan.params, plan.options, plan.rewrites)

    @uncollected()
    def study(self) -> Study:
        """Return a study of the layers; of observed and placed models, and of those without regions, they keep their
        order."""
        graph, params, options = self.graph, self.params, self.options
        if options.placed:
            return Study(tuple(side_by_side(graph, self.layers, params, options.engines)))
        if options.observe or not options.regions:
            return Study(tuple(self.layers))
        return Study.of(graph, self.layers, params, options.engines, options.lv2_bytes(params))

    def study_for_programs(self) -> Study:
        """Return a study of the layers for orders that are compared by programs. Raises
        :class:`compiler.ir.CompileError` if they keep their order."""
        if self.options.placed or self.options.observe or not self.options.regions:
            raise ir.CompileError(
                f"model {self.graph.name!r}: order {self.options.order!r} compares regions of programs: leave placed, "
                "observe and no-regions out"
            )
        return self.study()

    @uncollected()
    def search(self, study: Study) -> tuple[Orders, tuple[OrderReport, ...]]:
        """Return the orders that ``study`` finds by price, and what the searches did."""
        return study.search(self.options.search_limits, WIDE if self.options.order == "timed" else QUICK)
