"""Finds where in a bundle's function each operation is computed: inside the branch that alone needs it, if there is
one."""

from collections import defaultdict
from dataclasses import dataclass, field

from sim.rtl.native.bits import Word
from sim.rtl.native.bundles import Bundle, nodes_of
from sim.rtl.native.nodes import Design, MemoryReadPort, MemoryWritePort, Node, Register

BRANCH_COST = 8  #: a choice whose sides cost less is computed without a branch
_COST = {"mul": 3, "wide_shr": 12, "part": 2, "udiv": 20, "umod": 20, "aread": 3}


@dataclass(eq=False)
class Scope:
    """Is a sequence of operations, within ``parent``."""

    parent: "Scope | None" = None
    nodes: list[int] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """Return how many scopes this one is in."""
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass(frozen=True)
class Choice:
    """Joins registers whose next values depend on the same conditions. ``arms``: a scope for each condition, and a last
    one for the default unless all keep their values then."""

    conditions: tuple[Word, ...]
    registers: tuple[Register, ...]
    arms: tuple[Scope, ...]


@dataclass(eq=False)
class Branch:
    """Joins multiplexers with the same conditions, and has a scope for each of their sides. ``before``: all operations
    that they depend on."""

    conditions: tuple[Word, ...]
    sides: tuple[Scope, ...]
    members: list[int] = field(default_factory=list)
    before: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Nesting:
    """Holds the scopes of one bundle. ``branches``: the branch that a multiplexer is in; others are plain
    expressions."""

    root: Scope
    choices: list[Choice]
    reads: list[tuple[MemoryReadPort, Scope]]
    writes: list[tuple[MemoryWritePort, Scope]]
    outputs: list[str]
    branches: dict[int, Branch]


def nest(design: Design, bundle: Bundle, published: set[int]) -> Nesting:
    """Return where the operations of ``bundle`` go; ``published`` are nodes whose values are needed after the function,
    whatever happens in it."""
    return _Nester(design, bundle, published).nesting()


class _Nester:
    def __init__(self, design: Design, bundle: Bundle, published: set[int]) -> None:
        self._design, self._bundle = design, bundle
        self._members = set(bundle.nodes)
        self._root = Scope()
        self._uses: dict[int, list[Scope]] = defaultdict(list)
        for node in published:
            self._uses[node].append(self._root)

    def nesting(self) -> Nesting:
        outputs = [sink for sink in self._bundle.sinks if isinstance(sink, str)]
        for name in outputs:
            self._use(self._root, self._design.outputs[name])
        choices = self._choices()
        reads = [(sink, self._guarded(sink.enable, sink.address)) for sink in self._bundle.sinks
                 if isinstance(sink, MemoryReadPort)]  # fmt: skip
        writes = []
        for sink in self._bundle.sinks:
            if isinstance(sink, MemoryWritePort):
                self._use(self._root, *(enable for _, _, enable in sink.enables))
                writes.append((sink, self._guarded((), sink.address, sink.data)))
        branches = self._nest_nodes()
        return Nesting(self._root, choices, reads, writes, outputs, branches)

    def _guarded(self, condition: Word, *words: Word) -> Scope:
        inside = Scope(self._root)
        self._use(self._root, condition)
        self._use(inside, *words)
        return inside

    def _choices(self) -> list[Choice]:
        classes: dict[tuple, list[Register]] = defaultdict(list)
        for sink in self._bundle.sinks:
            if isinstance(sink, Register):
                classes[tuple(c for c, _ in sink.pairs), sink.default is None].append(sink)
        result = []
        for (conditions, keeps), registers in classes.items():
            self._use(self._root, *conditions)
            arms = [Scope(self._root) for _ in conditions]
            if not keeps:
                arms.append(Scope(self._root) if conditions else self._root)
            for register in registers:
                for arm, value in zip(arms, values(register), strict=True):
                    self._use(arm, value)
            result.append(Choice(conditions, tuple(registers), tuple(arms)))
        return result

    def _use(self, scope: Scope, *words: Word) -> None:
        for node in nodes_of(words):
            self._uses[node].append(scope)

    def _nest_nodes(self) -> dict[int, Branch]:
        nodes = self._design.nodes
        self._branches: dict[int, Branch] = {}
        known: dict[tuple, list[Branch]] = defaultdict(list)
        for number in reversed(self._bundle.nodes):
            scope = _common(self._uses[number])
            scope.nodes.append(number)
            node = nodes[number]
            if node.op not in ("mux", "chain"):
                self._use(scope, *node.args)
                continue
            conditions, sides = sides_of(node)
            branch = self._branch(number, conditions, known[id(scope), conditions])
            if branch is None:
                self._use(scope, *conditions)
                branch = Branch(conditions, tuple(Scope(scope) for _ in sides))
                known[id(scope), conditions].append(branch)
            branch.members.append(number)
            branch.before |= self._before(number)
            self._branches[number] = branch
            for side, value in zip(branch.sides, sides, strict=True):
                self._use(side, value)
        self._flatten()
        return self._branches

    def _branch(self, number: int, conditions: tuple[Word, ...], known: list[Branch]) -> Branch | None:
        """Return a branch that ``number`` can join, so that neither waits for the other."""
        before = self._before(number) if known else set()
        for branch in known:
            if number not in branch.before and before.isdisjoint(branch.members):
                return branch
        return None

    def _before(self, number: int) -> set[int]:
        """Return what must be computed before ``number``, given the branches so far."""
        own = self._members
        result: set[int] = set()
        work = [number]
        while work:
            node = work.pop()
            branch = self._branches.get(node)
            for other in branch.members if branch and node != number else [node]:
                for below in nodes_of(self._design.nodes[other].args):
                    if below in own and below not in result:
                        result.add(below)
                        work.append(below)
        return result

    def _flatten(self) -> None:
        """Give up branches that save little; inner ones come first."""
        inside: dict[int, int] = {}  # cost of what is within the branch that a node leads

        def cost(scope: Scope) -> int:
            return sum(_cost(self._design.nodes[n]) + inside.get(n, 0) for n in scope.nodes)

        for branch in sorted(dict.fromkeys(self._branches.values()), key=lambda one: -one.sides[0].depth):
            total = sum(cost(side) for side in branch.sides)
            if total + 2 * (len(branch.members) - 1) >= BRANCH_COST:
                inside[branch.members[0]] = total
                continue
            parent = branch.sides[0].parent
            assert parent is not None
            for side in branch.sides:
                parent.nodes.extend(side.nodes)
            for number in branch.members:
                del self._branches[number]


def values(register: Register) -> list[Word]:
    """Return the values of a register's conditions, and its default if it has one."""
    result = [value for _, value in register.pairs]
    return result if register.default is None else [*result, register.default]


def sides_of(node: Node) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return conditions and values of a ``mux`` or ``chain``; the last value is the default."""
    if node.op == "mux":
        return node.args[:1], node.args[1:]
    return node.args[:-1:2], (*node.args[1:-1:2], node.args[-1])


def _cost(node: Node) -> int:
    return _COST.get(node.op, 1) + sum(len(arg) for arg in node.args) // 2


def _common(scopes: list[Scope]) -> Scope:
    result = scopes[0]
    for other in scopes[1:]:
        while result is not other:
            if result.depth >= other.depth:
                assert result.parent is not None
                result = result.parent
            else:
                assert other.parent is not None
                other = other.parent
    return result
