"""Where the native simulator's time goes while a workload runs:

    python -m benchmarks.simprofile [--preset base] [--workload resnet50] [--depth 3]

A row for each module down to ``--depth`` levels: its groups of logic, how many of them are evaluated in a cycle, and
its share of the time.
"""

import argparse
from collections import defaultdict

from rich.console import Console

import caesura
from benchmarks.lab import ALONE
from benchmarks.profiling_bus import ProfilingBus
from benchmarks.workloads import inputs, workload
from caesura.views import table_of
from hw.contract.params import preset
from sim.rtl import SimTop, design_digest


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--workload", default="resnet50")
    parser.add_argument("--depth", type=int, default=3)
    arguments = parser.parse_args()
    params = preset(arguments.preset)

    def make() -> SimTop:
        from hw import Soc

        return SimTop(params, Soc(params))

    bus = ProfilingBus(params, make, source=design_digest(params))
    with caesura.Device(bus) as device:
        model = device.load(caesura.compile(workload(arguments.workload), params, options=ALONE))
        model.run(inputs(arguments.workload))
        cycles, modules = bus.cycle, bus.profile()
    rows: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0])
    for one in modules:
        row = rows[".".join(one.module.split(".")[: arguments.depth])]
        for i, value in enumerate((one.bundles, one.evaluations / cycles, 100 * one.share)):
            row[i] += value
    found = [
        (name, f"{bundles:.0f}", f"{evaluated:.1f}", f"{share:.1f} %")
        for name, (bundles, evaluated, share) in sorted(rows.items(), key=lambda row: -row[1][2])
    ]
    bundles, evaluated = (sum(row[i] for row in rows.values()) for i in range(2))
    heads = ("module", ">bundles", ">evaluated in a cycle", ">time")
    whole = ("all", f"{bundles:.0f}", f"{evaluated:.1f}", "")
    Console().print(table_of(f"{arguments.workload} on {params.name}", heads, [*found, whole]).rich())


if __name__ == "__main__":
    main()
