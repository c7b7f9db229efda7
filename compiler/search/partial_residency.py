"""Models whose tensors live in LV2 for parts of their lives, in one order of layers.

Which buffer leaves LV2 behind which layer is found by sizes and lives (:mod:`compiler.plan.memory.partial_lives`). What
leaves becomes a rewrite of the model, a store and loads with tensors of their own, so places are found and verified as
for any other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compiler.plan.layers.layer import Layer
from compiler.plan.layers.reloads import again_name, can_reload, kept_name
from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.budget import Lv2Division, divide
from compiler.plan.memory.partial_lives import PartialLife, Residency, least_moved
from compiler.plan.memory.place import shared_buffers, staging_parts
from compiler.plan.memory.sharing import BufferSharing
from compiler.plan.memory.staging import StagedSteps
from compiler.plan.order.graph import Order
from compiler.plan.plan import Reload
from compiler.plan.structure import layer_names


@dataclass(frozen=True)
class Version:
    """Is what a step ``made`` in a buffer, all of ``tensor``, and the steps that read it, ascending, until another step
    makes something else there. ``again``: whether these can read a copy."""

    tensor: str
    made: int
    readers: tuple[int, ...]
    again: bool


@dataclass
class _Uses:
    """Holds of a buffer the tensors that each step, by its number, reads and writes."""

    size: int
    reads: dict[int, set[str]] = field(default_factory=dict)
    writes: dict[int, set[str]] = field(default_factory=dict)

    @property
    def users(self) -> list[int]:
        """Return the steps, ascending."""
        return sorted(self.reads.keys() | self.writes.keys())

    def versions(self, layers: Sequence[Layer], whole: set[str]) -> Iterator[Version]:
        """Yield what is made in the buffer, one after the other; ``whole``: tensors that share no bytes with others,
        but with results that take their place."""
        made = sorted(self.writes)
        for at, end in zip(made, [*made[1:], len(layers)], strict=True):
            readers = tuple(step for step in sorted(self.reads) if at < step <= end)
            names = set[str]().union(self.writes[at], *(self.reads[step] for step in readers))
            name = min(names)
            again = len(names) == 1 and name in whole and all(can_reload(layers[step], name) for step in readers)
            yield Version(name, at, readers, again and bool(readers))


class PartialResidency:
    """Finds what leaves LV2 when the layers of ``model`` come in ``order``, with a division of LV2."""

    def __init__(self, model: LoweredModel, order: Order, division: Lv2Division) -> None:
        self._model, self._division = model, division
        self._layers = [model.layers[number] for number in order]
        self._steps = [ModelStep.alone(layer) for layer in self._layers]
        self._sharing = shared_buffers(model.graph, self._steps, model.params, model.options)
        uses = _uses_of(self._sharing, self._layers, model.params.lv1_word)
        whole = _whole(model, self._sharing)
        self._versions = [tuple(one.versions(self._layers, whole)) for one in uses]
        self._lives = [_life(*pair) for pair in zip(uses, self._versions, strict=True)]

    def found(self) -> tuple[LoweredModel, tuple[Layer, ...]] | None:
        """Return the model with reloads and its layers in their order; None if nothing leaves for a part of its
        life."""
        solved = self._solved()
        if solved is None:
            return None
        residency, numbers = solved
        names = dict(zip(self._model.layers, layer_names(self._model.layers), strict=True))
        named = [names[layer] for layer in self._layers]
        behind: dict[int, list[str]] = {}
        ahead: dict[int, list[str]] = {}
        wanted = list[Reload]()
        for at, number in enumerate(numbers):
            for version in self._versions[number]:
                gone = [step for step in (version.made, *version.readers) if (at, step) in residency.gone]
                passed = {step for step in (version.made, *version.readers) if (at, step) in residency.passed}
                one, firsts = _reload(version, gone, passed, named)
                if one is None:
                    continue
                wanted.append(one)
                if one.stored:
                    behind.setdefault(gone[0], []).append(kept_name(one))
                for group, first in enumerate(firsts):
                    ahead.setdefault(first, []).append(again_name(one, group))
        if not wanted:
            return None
        made = self._model.reloading(wanted)
        by_name = dict(zip(layer_names(made.layers), made.layers, strict=True))
        ordered = [
            name
            for step, own in enumerate(named)
            for name in (*ahead.get(step, ()), own, *behind.get(step, ()))
        ]  # fmt: skip
        return made, tuple(by_name[name] for name in ordered)

    def _solved(self) -> tuple[Residency, list[int]] | None:
        """Return what leaves, by numbers in a list of buffers, which is returned, too: those that have to be in DRAM
        for all their lives are not in it."""
        area, high = self._division.least.area.size, self._division.tensors_end
        staged = StagedSteps.of(self._steps, self._division.least.windows, self._model.params)
        passing = set(staged.numbers(lambda name: self._sharing.home(name).segment is None))
        numbers = list(range(len(self._lives)))
        while True:
            rooms = [high - area * (step in passing) for step in range(len(self._steps))]
            found = least_moved([self._lives[number] for number in numbers], rooms, area)
            if isinstance(found, Residency):
                return found, numbers
            alive = [one for one in numbers if self._lives[one].users[0] <= found <= self._lives[one].users[-1]]
            if not alive:
                return None
            largest = max(alive, key=lambda one: self._lives[one].size)
            numbers.remove(largest)
            passing |= set(self._lives[largest].users)


def divisions_for(model: LoweredModel) -> list[Lv2Division]:
    """Return the divisions of LV2 with the smallest staging areas, most room for tensors first, one for each size of
    the windows of weights."""
    params, options = model.params, model.options
    given = divide(model.graph, model.layers, params, options.engines, options.lv2_bytes(params))
    small = [made for part in staging_parts(options) for one in given if (made := one.with_staging(part, params))]
    by_windows = {one.least.windows: one for one in sorted(small, key=lambda one: -one.least.area.size)}
    return sorted(by_windows.values(), key=lambda one: -one.tensors_end)


def _uses_of(sharing: BufferSharing, layers: Sequence[Layer], word: int) -> list[_Uses]:
    """Return the uses of each buffer that may lie in LV2."""
    found: dict[int, _Uses] = {}
    for step, layer in enumerate(layers):
        for names, kind in ((layer.inputs, "reads"), (layer.outputs, "writes")):
            for name in names:
                home = sharing.home(name)
                if home.segment is None and home.size:
                    one = found.setdefault(id(home), _Uses(-(-home.size // word) * word))
                    getattr(one, kind).setdefault(step, set()).add(name)
    return [one for one in found.values() if one.writes and min(one.writes) == one.users[0]]


def _whole(model: LoweredModel, sharing: BufferSharing) -> set[str]:
    """Return the tensors that are no part of another, and have one name."""
    names: dict[str, int] = {}
    for root in sharing.roots.values():
        names[root] = names.get(root, 0) + 1
    return {name for name in model.graph.tensors if name not in sharing.inside and names[sharing.roots[name]] == 1}


def _life(uses: _Uses, versions: Sequence[Version]) -> PartialLife:
    users = uses.users
    leaves, passes = dict.fromkeys(users, False), dict.fromkeys(users, False)
    for one in versions:
        for step in (one.made, *one.readers[:-1]):
            leaves[step] = one.again
        for step in one.readers:
            passes[step] = one.again and step not in uses.writes
    for one in versions:
        if one.made not in uses.reads:
            passes[one.made] = one.again
    behind = tuple(leaves[step] for step in users[:-1])
    return PartialLife(uses.size, tuple(users), frozenset(uses.writes), behind, tuple(passes[one] for one in users))


def _reload(
    version: Version, gone: Sequence[int], passed: set[int], named: Sequence[str]
) -> tuple[Reload | None, list[int]]:  # fmt: skip
    """Return the reload of ``version`` (None: it stays in LV2, or all read it in DRAM), which leaves behind the steps
    ``gone``, and the first reader of each group that loads it; the layers of steps are ``named``."""
    groups, direct, before = list[list[int]](), list[int](), version.made
    inside = first = version.made not in passed
    for step in version.readers:
        inside = inside and before not in gone
        first = first and inside
        if step in passed:
            direct.append(step)
            inside = first = False
        elif not inside:
            groups.append([step])
            inside = True
        elif not first:
            groups[-1].append(step)
        before = step
    stored = version.made not in passed
    if not groups and not (stored and direct):
        return None, []
    loads = tuple(tuple(named[step] for step in group) for group in groups)
    return Reload(version.tensor, stored, loads, tuple(named[step] for step in direct)), [one[0] for one in groups]
