"""Writes all C files of one simulator."""

from pathlib import Path

from sim.rtl.native.emit import BundleWriter
from sim.rtl.native.layout import Layout, row_of
from sim.rtl.native.nodes import Design
from sim.rtl.native.operations import settle_function
from sim.rtl.native.order import Schedule
from sim.rtl.native.slices import WORD

LINES_PER_FILE = 12_000  #: of C, so that several cores can compile

_RUNTIME = Path(__file__).with_name("runtime.c")
_PRIMITIVES = Path(__file__).with_name("primitives.h")


def program(design: Design, schedule: Schedule, host_memory: int) -> dict[str, str]:
    """Return the files, name to text; ``host_memory`` is the memory that the host sees as bytes."""
    layout = Layout(design, schedule)
    writers = [BundleWriter(design, schedule, layout, place) for place in range(len(schedule.bundles))]
    functions = [writer.functions() for writer in writers]
    commits = [place for place, writer in enumerate(writers) if writer.commits]
    files = {"state.h": _header(design, layout, len(writers), commits)}
    for number, text in enumerate(_chunks(functions)):
        files[f"bundles{number}.c"] = f'#include "state.h"\n{text}'
    files["start.c"] = (
        '#include "state.h"\n'
        + _tables(len(writers), commits)
        + _modules(design, schedule)
        + _initial(design, layout)
        + _registers(design)
    )
    files["runtime.c"] = _ports(design, schedule, host_memory) + _RUNTIME.read_text()
    files["settle.c"] = '#include "state.h"\n' + settle_function(design)
    return files


def _chunks(functions: list[str]) -> list[str]:
    chunks: list[list[str]] = [[]]
    lines = 0
    for function in functions:
        if lines > LINES_PER_FILE:
            chunks.append([])
            lines = 0
        chunks[-1].append(function)
        lines += function.count("\n")
    return ["".join(chunk) for chunk in chunks]


def _header(design: Design, layout: Layout, bundles: int, commits: list[int]) -> str:
    declarations = "".join(f"void g{place}(State *s);\n" for place in range(bundles))
    declarations += "".join(f"void c{place}(State *s);\n" for place in commits)
    head = f"#define BUNDLES {bundles}\n#define WORDS {layout.words}\n"
    return "#pragma once\n" + head + _PRIMITIVES.read_text() + layout.struct() + declarations + _SHARED


_SHARED = """\
extern void (*const EVALUATE[BUNDLES])(State *);
extern void (*const COMMIT[BUNDLES])(State *);
#define FIELD(name) sizeof(((State *)0)->name)
typedef struct { u64 place; u32 bytes; u64 value; } Initial;
typedef struct { u64 place; u32 bytes, width, word, low; } RegisterPart;
extern const Initial INITIAL[];
extern const RegisterPart PARTS[];
extern const char REGISTER_NAMES[], BUNDLE_MODULES[];
extern const u32 INITIALS, PART_COUNT, REGISTER_WORDS;
void settle(State *s);
"""


def _tables(bundles: int, commits: list[int]) -> str:
    evaluate = ", ".join(f"g{place}" for place in range(bundles))
    commit = ", ".join(f"[{place}] = c{place}" for place in commits) or "0"
    spread = ", ".join(f"{sum(0xFF << 8 * b for b in range(8) if n >> b & 1):#x}ull" for n in range(256))
    return (
        f"const u64 BYTES[256] = {{{spread}}};\n"
        f"void (*const EVALUATE[BUNDLES])(State *) = {{{evaluate}}};\n"
        f"void (*const COMMIT[BUNDLES])(State *) = {{{commit}}};\n"
    )


def _modules(design: Design, schedule: Schedule) -> str:
    names = "\n  ".join(f'"{design.modules[bundle.module] or "top"}\\n"' for bundle in schedule.bundles)
    return f"const char BUNDLE_MODULES[] =\n  {names};\n"


def _initial(design: Design, layout: Layout) -> str:
    """Return initial values as a table: (place in ``State``, bytes, value)."""
    entries = []
    for register in design.registers:
        if register.initial:
            names = [f"r{register.node}", *([f"n{register.node}"] if register.node in layout.deferred else [])]
            entries += [f"{{offsetof(State, {name}), FIELD({name}), {register.initial:#x}ull}}" for name in names]
    for index, memory in design.memories.items():
        row = row_of(memory)
        for at, value in memory.initial:
            for k in range(row.words):
                part = value >> k * WORD & ((1 << WORD) - 1)
                element = f"m{index}[{at * row.words + k}ull]"
                entries.append(f"{{offsetof(State, {element}), FIELD({element}), {part:#x}ull}}")
    table = ",\n  ".join(entries)
    return f"const Initial INITIAL[] = {{\n  {table}\n}};\nconst u32 INITIALS = {len(entries)};\n"


def _registers(design: Design) -> str:
    """Return the names of all registers, and where their parts lie: place in ``State``, bytes, width; word and bit of
    the list."""
    names, entries, at = [], [], 0
    for flop in design.flops:
        bits = sum(width for _, width in flop.words)
        names.append(f'"{bits} {flop.name}\\n"')
        low = 0
        for node, width in flop.words:
            entries.append(f"{{offsetof(State, r{node}), FIELD(r{node}), {width}, {at}, {low}}}")
            low += width
        at += -(-bits // WORD)
    lines, table = "\n  ".join(names or ['""']), ",\n  ".join(entries)
    return (
        f"const char REGISTER_NAMES[] =\n  {lines};\n"
        f"const RegisterPart PARTS[] = {{\n  {table}\n}};\n"
        f"const u32 PART_COUNT = {len(entries)}, REGISTER_WORDS = {at};\n"
    )


def _ports(design: Design, schedule: Schedule, host_memory: int) -> str:
    """Return the names of ports for the run loop, and who looks at what the host changes."""
    lines = ['#include "state.h"\n']
    sets: dict[str, set[int]] = {"memory": schedule.memory_readers.get(host_memory, set())}
    for name, node in design.inputs.items():
        lines.append(f"#define IN_{name} i{node}\n")
        sets["inputs"] = sets.get("inputs", set()) | schedule.readers.get(node, set())
    lines.append(f"#define HOST_MEMORY m{host_memory}\n")
    watching = set().union(*sets.values())
    body = "".join(f"  s->next[{reader // WORD}] |= 1ull << {reader % WORD};\n" for reader in sorted(watching))
    lines.append(f"static void host_acted(State *s) {{\n{body}}}\n")
    return "".join(lines)
