"""What a crowd of requests costs the computer that serves it: a row of ``caesura bench scheduling``."""

import time

import numpy as np

import caesura
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import ALONE, Lab
from examples.digits import MODEL
from sw.runtime import Runtime

PRESET, BACKEND = "tiny", "model"
REQUESTS, FEWER = 1000, 500


def figures() -> list[Figure]:
    """Return one row, measured on the fast model, whatever backend was asked for."""
    return [Figure("requests_at_once", Target(8, 4, "CPU s", at_most=True), _crowd)]


def _crowd(lab: Lab) -> Measured:
    """Return a thousand requests for one loaded model, all submitted before the first runs; the simulation is part of
    it."""
    with caesura.open(PRESET, BACKEND) as device:
        model = device.load(caesura.compile(MODEL, PRESET, options=ALONE))
        (port,) = model.image.meta.inputs
        x = np.random.default_rng(0).uniform(0, 1, port.shape).astype(port.dtype)
        begin = time.process_time()
        expected = model.run(x)[0]
        first = time.process_time() - begin
        seconds, correct = {}, True
        for count in (FEWER, REQUESTS):
            begin = time.process_time()
            runtime = Runtime(device, history=None)
            for _ in range(count):
                runtime.submit(model, x)
            runtime.run_until_done()
            seconds[count] = time.process_time() - begin
            outputs = [request.outputs or {} for request in runtime.requests]
            correct &= all(np.array_equal(found[n], value) for found in outputs for n, value in expected.items())
    detail = {
        "measured_on": f"{BACKEND}, {PRESET}, this computer",
        f"seconds_of_{FEWER}": round(seconds[FEWER], 2),
        "times_as_long_as_half": round(seconds[REQUESTS] / seconds[FEWER], 2),
        "first_inference": round(first, 3),
    }
    return Measured(seconds[REQUESTS], correct, detail)
