"""Writes the C functions of bundles: one that evaluates, and one that commits what could not change at once."""

from collections import defaultdict
from collections.abc import Iterable

from sim.rtl.native.bits import Word, constant_of, sliced, width_of
from sim.rtl.native.bundles import depends_on, nodes_of
from sim.rtl.native.expr import computed, literal
from sim.rtl.native.layout import Layout, row_of
from sim.rtl.native.nesting import Choice, Nesting, Scope, nest, values
from sim.rtl.native.nodes import Design, MemoryReadPort, MemoryWritePort
from sim.rtl.native.operations import Operations
from sim.rtl.native.order import Schedule, written
from sim.rtl.native.slices import WORD


class BundleWriter:
    """Writes the functions of the bundle at ``place`` in ``schedule``."""

    def __init__(self, design: Design, schedule: Schedule, layout: Layout, place: int) -> None:
        self._design, self._schedule, self._layout, self._place = design, schedule, layout, place
        self._bundle = schedule.bundles[place]
        self._published = [node for node in self._bundle.nodes if layout.published(node, place)]
        self._nesting = nest(design, self._bundle, set(self._published))
        self._own = set(self._bundle.nodes)
        self._early = _read_too_late(self._nesting, design) & schedule.in_place
        self._operations = Operations(design, self._nesting, self._own, self._early)
        self._expressions, self._lines = self._operations.expressions, self._operations.lines
        self._commits: list[str] = []

    def functions(self) -> str:
        """Return the text of ``g<place>`` and, where needed, ``c<place>``."""
        self._evaluate()
        body = "".join(f"  {line}\n" for line in self._lines)
        text = f"void g{self._place}(State *s) {{\n{body}}}\n"
        if self._commits:
            commits = "".join(f"  {line}\n" for line in self._commits)
            text += f"void c{self._place}(State *s) {{\n{commits}}}\n"
        return text

    @property
    def commits(self) -> bool:
        """Return whether there is a function that commits, once :meth:`functions` was called."""
        return bool(self._commits)

    # -- the function ----------------------------------------------------------------------------------------
    def _evaluate(self) -> None:
        for number in sorted(self._early):
            node = self._design.nodes[number]
            self._lines.append(f"const {computed(node.width)} p{number} = s->r{number};")
        self._operations.scope(self._nesting.root)
        for name in self._nesting.outputs:
            self._lines.append(f"s->o_{name} = {self._expressions.word(self._design.outputs[name])};")
        self._publish()
        if self._deferring():
            self._lines.append("u32 pending = 0;")
        for port, scope in self._nesting.reads:
            self._read(port, scope)
        for write, scope in self._nesting.writes:
            self._write(write, scope)
        for choice in self._nesting.choices:
            self._choice(choice)
        if self._deferring():
            self._lines.append(f"if (pending) s->commits[s->commit_count++] = {self._place};")

    def _deferring(self) -> bool:
        for sink in self._bundle.sinks:
            if any(node in self._layout.deferred for node in written(sink)):
                return True
            if isinstance(sink, MemoryWritePort) and sink.memory not in self._schedule.written_at_once:
                return True
        return False

    def _flag(self, readers: Iterable[int], when: str) -> list[str]:
        """Have ``readers`` evaluated: ``now``, in this cycle, or ``next``."""
        sets: dict[int, int] = defaultdict(int)
        for reader in readers:
            sets[reader // WORD] |= 1 << reader % WORD
        return [f"s->{when}[{word}] |= {bits:#x}ull;" for word, bits in sorted(sets.items())]

    def _again(self, *words: Word) -> None:
        """Have this bundle evaluated again if the words depend on a register that it does not watch."""
        unwatched = self._schedule.unwatched[self._place]
        if unwatched and unwatched & depends_on(self._design, self._own, words):
            self._lines += self._flag([self._place], "next")

    # -- results for other bundles ----------------------------------------------------------------------------
    def _publish(self) -> None:
        sets: dict[frozenset[int], list[int]] = defaultdict(list)
        for node in self._published:
            sets[frozenset(self._schedule.readers[node])].append(node)
        for readers, nodes in sets.items():
            terms = [term for node in nodes for term in self._differences(node)]
            lines = [line for node in nodes for line in self._store(node)]
            flags = self._flag(readers, "now")
            self._lines.append(f"if ({' | '.join(terms)}) {{")
            self._lines += [*lines, *flags, "}"]

    def _differences(self, node: int) -> list[str]:
        if self._design.nodes[node].width <= WORD:
            return [f"(s->w{node} != t{node})"]
        return [f"(s->w{node}[{i}] != t{node}[{i}])" for i in range(-(-self._design.nodes[node].width // WORD))]

    def _store(self, node: int) -> list[str]:
        if self._design.nodes[node].width <= WORD:
            return [f"s->w{node} = t{node};"]
        return [f"s->w{node}[{i}] = t{node}[{i}];" for i in range(-(-self._design.nodes[node].width // WORD))]

    # -- registers -------------------------------------------------------------------------------------------
    def _choice(self, choice: Choice) -> None:
        """Work out the next values of registers in the arm that holds, and let them take these in a single place."""
        if not choice.arms:  # registers that never change
            return
        nodes = [register.node for register in choice.registers]
        self._lines += [f"{computed(self._design.nodes[node].width)} v{node};" for node in nodes]
        self._lines.append("do {")
        for i, arm in enumerate(choice.arms):
            self._lines.append(self._operations.head(i, choice.conditions, rare=i == 0 and _resets(choice)))
            if arm is not self._nesting.root:
                self._operations.scope(arm)
            for register in choice.registers:
                self._lines.append(f"v{register.node} = {self._expressions.word(values(register)[i])};")
            self._again(*(values(register)[i] for register in choice.registers))
        self._lines.append("}" if len(choice.arms) > len(choice.conditions) else "} else break;")
        self._update(nodes)
        self._lines.append("} while (0);")

    def _update(self, nodes: list[int]) -> None:
        """Let registers ``r`` take the values ``v``."""
        sets: dict[tuple[frozenset[int], bool], list[int]] = defaultdict(list)
        for node in nodes:
            sets[frozenset(self._schedule.readers.get(node, ())), node in self._layout.deferred].append(node)
        for (readers, deferred), members in sets.items():
            stores = [f"s->{'n' if deferred else 'r'}{node} = v{node};" for node in members]
            if deferred:
                self._commits += [f"s->r{node} = s->n{node};" for node in members if
                                  f"s->r{node} = s->n{node};" not in self._commits]  # fmt: skip
            then = [*self._flag(readers, "next"), *(["pending = 1;"] if deferred else [])]
            if not then:
                self._lines += [*stores, *then]
                continue
            different = " | ".join(f"(v{node} ^ s->r{node})" for node in members)
            self._lines += [f"if ({different}) {{", *then, *([] if not deferred else stores), "}"]
            if deferred:
                continue
            self._lines += stores

    # -- memories --------------------------------------------------------------------------------------------
    def _read(self, port: MemoryReadPort, scope: Scope) -> None:
        memory = self._design.memories[port.memory]
        first = port.words[0][0]
        self._lines.append(f"if ({self._expressions.word(port.enable)}) {{")
        self._operations.scope(scope)
        self._lines.append(f"const u64 a{first} = {self._expressions.word(port.address)};")
        inside = memory.depth >= 1 << width_of(port.address)
        for node, start, width in port.words:
            value = self._operations.row_bits(port.memory, f"a{first}", start, width)
            value = value if inside else f"a{first} < {memory.depth} ? {value} : 0"
            self._lines.append(f"const {computed(width)} v{node} = {value};")
        self._again(port.address)
        self._update([node for node, _, _ in port.words])
        self._lines.append("}")

    def _write(self, port: MemoryWritePort, scope: Scope) -> None:
        index = self._design.writes.index(port)
        memory, row = self._design.memories[port.memory], row_of(self._design.memories[port.memory])
        if not port.enables:
            return
        conditions = list(dict.fromkeys(enable for _, _, enable in port.enables))
        some = " | ".join(self._expressions.word(condition) for condition in conditions)
        self._lines.append(f"if ({some}) {{")
        self._operations.scope(scope)
        self._again(port.address, port.data)
        self._lines.append(f"const u64 a = {self._expressions.word(port.address)};")
        if memory.depth < 1 << width_of(port.address):
            self._lines.append(f"if (a < {memory.depth}) {{")
        else:
            self._lines.append("{")
        at_once = port.memory in self._schedule.written_at_once
        for k in range(row.words):
            low, width = k * WORD, min(WORD, memory.width - k * WORD)
            data = self._expressions.word(sliced(port.data, low, width))
            enabled = self._enabled(port, low, width)
            if at_once:
                target = f"s->m{port.memory}[a * {row.words} + {k}]"
                self._lines.append(f"{{ const u64 m = {enabled}; {target} = ({target} & ~m) | ((u64){data} & m); }}")
            else:
                self._lines.append(f"s->data{index}[{k}] = {data}; s->mask{index}[{k}] = {enabled};")
                target = f"s->m{port.memory}[s->at{index} * {row.words} + {k}]"
                self._commits.append(
                    f"if (s->on{index}) {target} = ({target} & ~s->mask{index}[{k}])"
                    f" | (s->data{index}[{k}] & s->mask{index}[{k}]);"
                )
        if not at_once:
            self._lines.append(f"s->at{index} = a; s->on{index} = 1; pending = 1;")
            self._commits.append(f"s->on{index} = 0;")
        self._lines += self._flag(self._schedule.memory_readers.get(port.memory, ()), "next")
        self._lines.append("}}")

    def _enabled(self, port: MemoryWritePort, low: int, width: int) -> str:
        """Return the bits of the 64 from ``low`` that are written."""
        parts = [(max(at, low), min(at + size, low + width), enable) for at, size, enable in port.enables
                 if at < low + width and low < at + size]  # fmt: skip
        if not parts:
            return "0ull"
        whole = all(stop - start == 8 and (start - low) % 8 == 0 for start, stop, _ in parts)
        if whole and len(parts) * 8 == width and width == WORD:
            bits = tuple(piece for _, _, enable in parts for piece in enable)
            return f"BYTES[{self._expressions.word(sliced(bits, 0, 8))}]"
        terms = []
        for start, stop, enable in parts:
            mask = literal((1 << (stop - low)) - (1 << (start - low)), WORD)
            terms.append(f"((0 - (u64){self._expressions.word(enable)}) & {mask})")
        return f"({' | '.join(terms)})"


def _resets(choice: Choice) -> bool:
    """Return whether the first arm only sets registers to constants, as a reset does: its code is moved out of the
    way."""
    return all(constant_of(values(register)[0]) is not None for register in choice.registers)


def _read_too_late(nesting: Nesting, design: Design) -> set[int]:
    """Return the registers that change in place and are then still read: by choices other than their own."""
    within = Operations(design, nesting, set(), set()).words_within
    owners: dict[int, object] = {}
    for choice in nesting.choices:
        owners.update({register.node: choice for register in choice.registers})
    for port, _ in nesting.reads:
        owners.update({node: port for node, _, _ in port.words})
    late: set[int] = set()
    for choice in nesting.choices:
        words = [word for arm in choice.arms if arm is not nesting.root for word in within(arm)]
        words += [word for register in choice.registers for word in values(register)]
        words += choice.conditions
        late |= {node for node in nodes_of(words) if owners.get(node, choice) is not choice}
    for port, scope in nesting.reads:
        words = [port.address, port.enable, *within(scope)]
        late |= {node for node in nodes_of(words) if owners.get(node, port) is not port}
    for write, scope in nesting.writes:
        words = [write.address, write.data, *(enable for _, _, enable in write.enables), *within(scope)]
        late |= {node for node in nodes_of(words) if node in owners}
    return late
