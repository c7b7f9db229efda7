"""Defines a model as it is before its layers are ordered: what studies, searches and plans are about."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from compiler import ir
from compiler.plan.layers.fuse import fold_tables, fuse
from compiler.plan.layers.heads import head_groups, in_turn, with_head_groups
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.load_inputs import inputs_to_load, with_loads
from compiler.plan.layers.lower import lower
from compiler.plan.layers.pieces import concatenations_to_read, with_pieces
from compiler.plan.layers.reloads import with_reloads
from compiler.plan.layers.verify import verify_layers
from compiler.plan.memory.layer_lives import LayerLives
from compiler.plan.memory.place import most_room
from compiler.plan.options import Options
from compiler.plan.plan import HeadGroups, InputLoad, PiecesRead, Reload, Rewrite
from compiler.plan.regions.defer import defer
from compiler.plan.regions.placed_study import placed_run_study
from compiler.plan.regions.regions import Study
from compiler.plan.regions.side_by_side import side_by_side
from hw.contract.params import SocParams


@dataclass(frozen=True)
class LoweredModel:
    """Holds the ``layers`` of ``graph``, which has the tensors that they add, before any is joined to others, and the
    groups of heads and loads of inputs among the ``rewrites`` that led to them."""

    graph: ir.Graph
    layers: list[Layer]
    params: SocParams
    options: Options
    rewrites: tuple[Rewrite, ...]
    turns: Sequence[Sequence[str]] = ()  #: operators that run in this order, by their names

    @classmethod
    def of(
        cls, graph: ir.Graph, params: SocParams, options: Options, given: Sequence[Rewrite] | None = None
    ) -> "LoweredModel":  # fmt: skip
        """Return the layers of ``graph``; ``given`` says which heads are grouped and which inputs loaded, if that is
        decided already. Raises :class:`compiler.ir.CompileError`."""
        graph = replace(graph, tensors=dict(graph.tensors))  # lowering adds some
        heads, loads, pieces, reloads = list[HeadGroups](), list[InputLoad](), list[PiecesRead](), list[Reload]()
        if given is not None:
            heads = [one for one in given if isinstance(one, HeadGroups)]
            loads = [one for one in given if isinstance(one, InputLoad)]
            pieces = [one for one in given if isinstance(one, PiecesRead)]
            reloads = [one for one in given if isinstance(one, Reload)]
        elif not options.observe:
            heads = head_groups(graph, params)
        turns = in_turn(graph, heads)
        graph = with_head_groups(graph, heads) if heads else graph
        layers = lower(graph, params)
        verify_layers(graph, layers)
        if not options.observe:  # an observer looks at every operator's own result
            layers = fold_tables(graph, fuse(graph, layers, placed=options.placed))
            if given is None and not options.placed:
                loads = inputs_to_load(graph, layers, params, options.engines, options.lv2_bytes(params))
        if loads:
            layers = with_loads(graph, layers, loads)
        if not options.placed:  # layers that wait for their reader save memory, and cost what could run side by side
            layers = defer(graph, layers, {name for turn in turns for name in turn})
        layers = with_reloads(graph, with_pieces(graph, layers, pieces), reloads)
        verify_layers(graph, layers)
        return cls(graph, layers, params, options, (*heads, *loads, *pieces, *reloads), turns)

    def in_pieces(self) -> "LoweredModel | None":
        """Return the same without the concatenations whose pieces all readers can read where they lie; None if there is
        none, or the model is observed or placed."""
        wanted = concatenations_to_read(self.graph, self.layers)
        if not wanted or self.options.observe or self.options.placed:
            return None
        layers = with_pieces(self.graph, self.layers, wanted)
        return replace(self, layers=layers, rewrites=(*self.rewrites, *wanted))

    def reloading(self, wanted: Sequence[Reload]) -> "LoweredModel":
        """Return the same with the tensors of ``wanted`` in LV2 for a part of their lives."""
        graph = replace(self.graph, tensors=dict(self.graph.tensors))  # it gets copies
        layers = with_reloads(graph, self.layers, wanted)
        return replace(self, graph=graph, layers=layers, rewrites=(*self.rewrites, *wanted))

    def smallest(self) -> "LoweredModel":
        """Return the same, or that in pieces, whichever has the fewest bytes alive at a time in some order."""
        other = self.in_pieces()
        return min((self, other), key=lambda one: one.lives.sets.least().peak) if other else self

    @property
    def lives(self) -> LayerLives:
        """Return what is alive when in any order of the layers."""
        return LayerLives.of(self.graph, self.layers, self.params, self.turns)

    def study(self) -> Study:
        """Return a study of the layers; of observed models, and of those that are shared without regions, they keep
        their order, and of those that are to claim least they have that with the fewest bytes alive."""
        graph, params, options, lv2 = self.graph, self.params, self.options, self.options.lv2_bytes(self.params)
        if options.placed:
            if options.observe:
                return Study(tuple(side_by_side(graph, self.layers, params, options.engines)))
            made = partial(placed_run_study, graph, params=params, engines=options.engines, lv2_bytes=lv2)
            return Study.of_runs(self.layers, partial(made, regions=options.regions))
        if options.for_memory and not options.observe:
            lives = self.lives
            return Study(lives.ordered(lives.sets.least().order))
        if options.observe or not options.regions:
            return Study(tuple(self.layers))
        room = most_room(graph, self.layers, params, options)
        return Study.of(graph, self.layers, params, options.engines, lv2, self.turns, room)
