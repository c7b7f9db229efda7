"""Writes C statements for the operations of a bundle."""

from collections.abc import Iterable

from sim.rtl.native.bits import Word, width_of
from sim.rtl.native.bundles import nodes_of
from sim.rtl.native.expr import Expressions, computed, literal, mask
from sim.rtl.native.layout import field_of, is_source, row_of
from sim.rtl.native.nesting import Branch, Nesting, Scope, sides_of
from sim.rtl.native.nodes import Design, Node
from sim.rtl.native.slices import WORD


class Operations:
    """Writes the scopes of ``nesting`` to ``lines``.

    Operations become local variables ``t<n>``; what is not in ``own`` is read from the state, the registers ``early``
    from copies ``p<n>`` that were made before anything changed."""

    def __init__(self, design: Design, nesting: Nesting, own: set[int], early: set[int]) -> None:
        self._design, self._nesting, self._own, self._early = design, nesting, own, early
        self.expressions = Expressions(design.nodes, self._name)
        self.lines: list[str] = []

    def _name(self, number: int) -> str:
        node = self._design.nodes[number]
        if number in self._own:
            return f"t{number}"
        if number in self._early:
            return f"p{number}"
        field = f"s->{field_of(node, number)}"
        return field if node.width > 16 else f"((u32){field})"

    def row_bits(self, memory: int, address: str, start: int, width: int) -> str:
        """Return ``width`` bits from ``start`` of a row of a memory."""
        row = row_of(self._design.memories[memory])
        kind = computed(width)
        if row.words == 1:
            value = f"s->m{memory}[{address}]"
            value = f"(u64){value} >> {start}" if start else value
            whole = width == self._design.memories[memory].width
            return f"({kind})({value})" + ("" if whole else f" & {mask(width)}")
        return f"({kind})row_bits(s->m{memory} + {address} * {row.words}, {start}, {width})"

    def scope(self, scope: Scope) -> None:
        """Write operations in an order in which they can be computed: a branch comes after all that its members
        need."""
        inside, done = set(scope.nodes), set[int]()
        work = sorted(scope.nodes, reverse=True)
        while work:
            number = work[-1]
            branch = self._nesting.branches.get(number)
            waits = [] if number in done else [n for n in self._needs(number, branch) if n in inside and n not in done]
            if waits:
                work += sorted(waits, reverse=True)
                continue
            work.pop()
            if number in done:
                continue
            done.update(branch.members if branch else (number,))
            if branch:
                self._branch(branch)
            else:
                self._operation(number, self._design.nodes[number])

    def _needs(self, number: int, branch: Branch | None) -> set[int]:
        if branch is None:
            return nodes_of(self._design.nodes[number].args)
        words = [*branch.conditions, *(word for side in branch.sides for word in self.words_within(side))]
        words += [word for member in branch.members for word in self._design.nodes[member].args]
        return nodes_of(words)

    def _branch(self, branch: Branch) -> None:
        for member in branch.members:
            self.lines.append(f"{computed(self._design.nodes[member].width)} t{member};")
        for i, side in enumerate(branch.sides):
            self.lines.append(self.head(i, branch.conditions))
            self.scope(side)
            for member in branch.members:
                _, values = sides_of(self._design.nodes[member])
                self.lines.append(f"t{member} = {self.expressions.word(values[i])};")
        self.lines.append("}")

    def _operation(self, number: int, node: Node) -> None:
        kind = computed(min(node.width, WORD))
        if node.op == "wide_shr":
            self._wide_shift(number, node)
        elif node.op == "pick":
            self._pick(number, node, kind)
        elif node.op == "part":
            self._part(number, node, kind)
        elif node.op == "aread":
            self._asynchronous_read(number, node, kind)
        else:
            self.lines.append(f"const {kind} t{number} = {self.expressions.operation(node)};")

    def head(self, i: int, conditions: tuple[Word, ...], *, rare: bool = False) -> str:
        """Return how arm ``i`` of a choice begins; behind the last condition comes the default."""
        before = "} else " if i else ""
        if i == len(conditions):
            return f"{before}{{"
        return f"{before}if ({'RARELY' if rare else ''}({self.expressions.word(conditions[i])})) {{"

    def _array(self, name: str, word: Word) -> None:
        """Return an array of the words of ``word`` and a zero behind them."""
        items = ", ".join([*self.expressions.words64(word), "0"])
        self.lines.append(f"const u64 {name}[] = {{{items}}};")

    def _wide_shift(self, number: int, node: Node) -> None:
        count = -(-width_of(node.args[0]) // WORD)
        out = -(-node.width // WORD)
        self._array(f"a{number}", node.args[0])
        self.lines.append(f"u64 t{number}[{out + 1}];")
        amount = self.expressions.word(node.args[1])
        self.lines.append(f"shift_right(t{number}, {out}, a{number}, {count}, {amount});")
        self.lines.append(f"t{number}[{out}] = 0;")
        if node.width % WORD:
            self.lines.append(f"t{number}[{out - 1}] &= {literal((1 << node.width % WORD) - 1, WORD)};")

    def _pick(self, number: int, node: Node, kind: str) -> None:
        index, *choices = node.args
        self.lines.append(f"{kind} t{number} = 0;")
        self.lines.append(f"switch ({self.expressions.word(index)}) {{")
        for i, value in enumerate(choices):
            self.lines.append(f"case {i}: t{number} = {self.expressions.word(value)}; break;")
        self.lines.append("}")

    def _part(self, number: int, node: Node, kind: str) -> None:
        value, offset = node.args
        count = -(-width_of(value) // WORD)
        self._array(f"a{number}", value)
        at = self.expressions.word(offset)
        self.lines.append(
            f"const {kind} t{number} = ({kind})bits_within(a{number}, {count}, {at}) & {mask(node.width)};"
        )

    def _asynchronous_read(self, number: int, node: Node, kind: str) -> None:
        memory, start = node.info
        address = self.expressions.word(node.args[0])
        self.lines.append(f"{kind} t{number} = 0;")
        row = self.row_bits(memory, f"a{number}", start, node.width)
        self.lines.append(f"{{ const u64 a{number} = {address};")
        self.lines.append(f"if (a{number} < {self._design.memories[memory].depth}) t{number} = {row}; }}")

    def words_within(self, scope: Scope) -> Iterable[Word]:
        """Yield all that is read in ``scope`` and in what it encloses."""
        for number in scope.nodes:
            yield from self._design.nodes[number].args
            branch = self._nesting.branches.get(number)
            for side in branch.sides if branch else ():
                yield from self.words_within(side)


def settle_function(design: Design) -> str:
    """Return the C function ``settle``, which tells the outputs as they are now from the state alone, and changes
    nothing else."""
    own: set[int] = set()
    work = list(nodes_of(design.outputs.values()))
    while work:
        number = work.pop()
        if number not in own and not is_source(design.nodes[number]):
            own.add(number)
            work.extend(nodes_of(design.nodes[number].args))

    def name(number: int) -> str:
        node = design.nodes[number]
        return f"t{number}" if number in own else f"((u{64 if node.width > 32 else 32})s->{field_of(node, number)})"

    expressions = Expressions(design.nodes, name)
    lines = [
        f"  const {computed(design.nodes[n].width)} t{n} = {expressions.operation(design.nodes[n])};"
        for n in sorted(own)
    ]
    lines += [f"  s->o_{output} = {expressions.word(word)};" for output, word in design.outputs.items()]
    return "void settle(State *s) {\n" + "\n".join(lines) + "\n}\n"
