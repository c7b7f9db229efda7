"""One measurement of ``caesura bench modelspeed``: ``python -m benchmarks.modelspeed_process WHAT FOLDER``.

Prints one JSON object. WHAT: ``timing``, ``trace`` (timing, and a trace beside it), ``data``, or ``pair``.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import caesura
from hw.image import Image
from sim import save_runs
from sim.model import ModelBus

LIMIT = 1_000_000_000
_KIB_PER_MB = 1000


def main(what: str, folder: Path) -> dict[str, Any]:
    """Measure and report."""
    names = ["resnet50_half", "squeezenet_half"] if what == "pair" else ["resnet50"]
    images = [Image.from_bytes((folder / f"{name}.cimg").read_bytes()) for name in names]
    bus = ModelBus(images[0].params, data=what == "data")
    if what == "trace":
        bus.record()
    with caesura.Device(bus) as device:
        inference = _with_data(device, images[0], folder) if what == "data" else _timed(device, images)
        begin, wall, cycle = time.process_time(), time.perf_counter(), bus.cycle
        report = inference()
        if what == "trace":
            save_runs(folder / "trace.npy", bus.run_table)
        seconds, wall = time.process_time() - begin, time.perf_counter() - wall
        report |= {"seconds": round(seconds, 3), "wall": round(wall, 3), "simulated_cycles": bus.cycle - cycle}
    return report | {"megabytes": round(_most_resident()), "what": what}


def _most_resident() -> float:
    """Return the megabytes of this program; what ``getrusage`` says may be those of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / _KIB_PER_MB


Inference = Callable[[], dict[str, Any]]  #: what is measured: its models are loaded, and their images were checked


def _with_data(device: caesura.Device, image: Image, folder: Path) -> Inference:
    feed = {image.meta.inputs[0].name: np.load(folder / "input.npy")}
    model = device.load(image)

    def inference() -> dict[str, Any]:
        outputs, stats = model.run(feed)
        return {"cycles": stats.cycles, "outputs": {name: value.tolist() for name, value in outputs.items()}}

    return inference


def _timed(device: caesura.Device, images: list[Image]) -> Inference:
    driver, alone = device.driver, len(images) == 1
    engines = driver.params.engines
    models = [driver.load(image, engines=None if alone else [number % engines]) for number, image in enumerate(images)]

    def inference() -> dict[str, Any]:
        ids = []
        for model in models:
            driver.begin(model, LIMIT)
            ids += driver.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)
        results = driver.collect(ids, LIMIT)
        starts = (result.prologue_start or result.start for result in results)
        return {"cycles": max(result.end for result in results) - min(starts)}

    return inference


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
