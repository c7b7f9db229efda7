"""Tells at the head of a Verilog file what it holds: parameters, ports and the hierarchy of modules."""

import re
from collections.abc import Mapping
from functools import cache

from hw.contract.params import SocParams
from sim.rtl.verilog.layout import comment

_INSTANCE = re.compile(r"^  (\w+) (\w+) \($", re.MULTILINE)
_PORT = re.compile(r"^  (input|output) (?:wire|reg) (?:\[(\d+):0\] )?(\w+)(?: = .*)?,?$", re.MULTILINE)
#: What a port of the top is for, by what its name begins with.
_PORTS = {
    "clk": "clock, rising edge",
    "rst": "reset, synchronous, active high",
    "irq": "interrupt, level: some engine has one pending that is enabled",
    "axil_": "AXI4-Lite slave: registers",
    "axi_": "AXI4 master: memory",
}


def design_header(params: SocParams, modules: Mapping[str, str]) -> str:
    """Return what is said of the whole design at the head of its top's file; ``modules`` holds the top first."""
    top = next(iter(modules))
    fields = ", ".join(f"{name} {value}" for name, value in params.to_dict().items() if name != "name")
    lines = [
        f"// {top}: the accelerator Caesura with the parameters of {params.name}. Made by caesura verilog;",
        "// docs/verilog.md says how to read it.",
        "//",
        *comment(f"parameters: {fields}"),
        "//",
        "// ports, to be connected by name",
        *(f"//   {line}" for line in _port_table(modules[top])),
        "//",
        f"// hierarchy: {len(modules)} modules, by name of the instance",
        *(f"//   {line}" for line in _tree(top, modules)),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def uses(modules: Mapping[str, str]) -> dict[str, int]:
    """Return how often each of ``modules``, the top first, stands in the design."""
    children = _children(modules)
    top = next(iter(modules))
    parents: dict[str, list[str]] = {name: [] for name in modules}
    for parent, inside in children.items():
        for module, _ in inside:
            parents[module].append(parent)

    @cache
    def times(name: str) -> int:
        return 1 if name == top else sum(map(times, parents[name]))

    return {name: times(name) for name in modules}


def _port_table(text: str) -> list[str]:
    head = text[: text.index("\n);\n")] + "\n"
    ports = [(name, direction, int(high or 0) + 1) for direction, high, name in _PORT.findall(head)]
    width = max(len(name) for name, _, _ in ports)
    lines, told = [], ""
    for name, direction, bits in ports:
        about = next((text for start, text in _PORTS.items() if name.startswith(start)), "")
        lines.append(f"{name:<{width}}  {direction:<6} {bits:>4}  {about if about != told else ''}")
        told = about
    return lines


def _children(modules: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    return {
        name: [(module, instance) for module, instance in _INSTANCE.findall(text) if module in modules]
        for name, text in modules.items()
    }


def _tree(top: str, modules: Mapping[str, str]) -> list[str]:
    """Return a line for each instance, those of one module inside another together."""
    children = _children(modules)
    lines = [top]

    def grow(name: str, indent: str) -> None:
        alike: dict[str, list[str]] = {}
        for module, instance in children[name]:
            alike.setdefault(module, []).append(instance)
        for module, found in alike.items():
            instances = sorted(found, key=lambda instance: (len(instance), instance))  # lane9 before lane10
            named = instances[0] if len(instances) == 1 else f"{instances[0]} .. {instances[-1]} ({len(instances)})"
            lines.append(f"{indent}{named}: {module}")
            grow(module, indent + "  ")

    grow(top, "  ")
    return lines
