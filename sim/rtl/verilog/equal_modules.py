"""Makes one module of those that are equal, and gives each a short name: Amaranth writes one for each instance."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from sim.rtl.verilog.netlist_text import INSTANCE, ModuleText

_DIGITS = "0123456789"


def merged(modules: Sequence[ModuleText]) -> list[ModuleText]:
    """Return ``modules``, the top first, with one for all that are equal up to names of instances above them, and
    their names: a name is what its instances' paths end in alike, as much of it as tells it from all others."""
    by_path = {module.path: module for module in modules}
    digests: dict[str, str] = {}

    def digest(path: str) -> str:
        if path not in digests:
            module = by_path[path]
            text = "\n".join(line for line in module.lines if not line.lstrip().startswith("attribute \\src "))
            text = INSTANCE.sub(lambda found: f"  cell {digest(found[1])} {found[2]}", text)
            digests[path] = hashlib.sha256(text.encode()).hexdigest()
        return digests[path]

    groups: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        groups[digest(module.path)].append(module.path)
    names = dict(zip(groups, _names(list(groups.values())), strict=True))
    chosen = [by_path[paths[0]] for paths in groups.values()]
    return [
        ModuleText(
            names[digests[module.path]],
            [
                INSTANCE.sub(lambda found: f"  cell \\{names[digests[found[1]]]} \\{found[2]}", line)
                for line in module.lines
            ],
        )
        for module in chosen
    ]


def _names(groups: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each group of paths, of which the first is that of the top alone."""
    top = groups[0][0]
    endings = [_endings(group) for group in groups[1:]]
    names = [top]
    for k, own in enumerate(endings):
        taken = {ending for other in (*endings[:k], *endings[k + 1 :]) for ending in other}
        name = f"{top}_{next((ending for ending in own if ending not in taken), own[-1])}"
        while name in names:
            name += "_"
        names.append(name)
    return names


def _endings(paths: Sequence[str]) -> list[str]:
    """Return what may name all of ``paths``, the shortest first: numbers that differ are left out, and where the paths
    differ otherwise the first goes on."""
    split = [[part.split("$")[0] for part in path.split(".")[:0:-1]] for path in paths]  # $ tells it from a signal
    endings: list[str] = []
    alike = True
    for k, first in enumerate(split[0]):
        parts = {parts[k] if k < len(parts) else "" for parts in split}
        stripped = {part.rstrip(_DIGITS) for part in parts}
        alike = alike and len(stripped) == 1
        part = first if len(parts) == 1 or not alike else first.rstrip(_DIGITS)
        endings.append("_".join([part, *endings[-1:]]))
    return endings
