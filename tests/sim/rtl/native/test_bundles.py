"""Bundles of operations: what is repeated where."""

from amaranth.hdl import Module, Signal

from sim.rtl import SimTop
from sim.rtl.native.bundles import make_bundles, nodes_of, sink_words
from sim.rtl.native.cells import read_cells
from sim.rtl.native.lower import lower
from tests.sim.rtl.native.test_refusals import PARAMS, Part


def chain_of_cheap_operations(m: Module) -> Signal:
    """Three modules use ``last`` and all that it depends on; ``last`` depends on ``first`` alone."""
    state = Signal(8)
    first, last = Signal(), Signal()
    m.d.sync += state.eq(state + 3)
    m.d.comb += [first.eq(state[:3] == 5), last.eq(state[7] & first)]
    seen = Signal(3)
    for k in range(3):
        m.submodules[f"user{k}"] = user = Module()
        kept = Signal(24, name=f"kept{k}")
        with user.If(last):
            user.d.sync += kept.eq(kept + state)
        with user.Elif(first):
            user.d.sync += kept.eq(kept ^ state)
        m.d.comb += seen[k].eq(kept.xor())
    return seen


def test_no_bundle_computes_what_it_does_not_use():
    cells = read_cells(SimTop(PARAMS, Part(chain_of_cheap_operations)))
    design = lower(cells, [])
    bundles = make_bundles(design)
    published = set().union(*(_read(design, bundle) for bundle in bundles))
    for bundle in bundles:
        used = _read(design, bundle)
        for node in bundle.nodes:
            assert node in used or (node in published and node not in bundle.copies), design.nodes[node]


def _read(design, bundle):
    words = [word for sink in bundle.sinks for word in sink_words(design, sink)]
    return nodes_of([*words, *(word for node in bundle.nodes for word in design.nodes[node].args)])
