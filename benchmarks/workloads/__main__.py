"""List the workloads, or generate some and print where they are: ``python -m benchmarks.workloads [NAME ...]``."""

import argparse
import time

from benchmarks.workloads import UnknownWorkload, names, workload


def main() -> None:
    """Generate the workloads named on the command line; list all when there is none."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workloads", description="generate benchmark models")
    parser.add_argument("names", nargs="*", metavar="NAME", help="workload to generate (default: list them)")
    chosen = parser.parse_args().names
    if not chosen:
        print("\n".join(names()))
    for name in chosen:
        start = time.perf_counter()
        try:
            path = workload(name)
        except UnknownWorkload as error:
            raise SystemExit(f"error: {error}") from None
        print(f"{name}: {path} ({path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - start:.1f} s)")


if __name__ == "__main__":
    main()
