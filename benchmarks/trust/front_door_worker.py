"""A process that takes hostile files in, one after the other: ``python -m benchmarks.trust.front_door_worker``.

Each line of its input is a JSON list ``[kind, path]``; each line that it answers is ``accepted``, ``refused: why`` or,
for an error that a user would see as a traceback, ``TRACEBACK ...``.
"""

import json
import resource
import signal
import sys
import traceback
import warnings
from functools import cache
from math import prod
from pathlib import Path

import caesura
from caesura import load_samples, machine, user_errors
from examples.digits import MODEL
from hw.contract.params import preset
from hw.image import Image
from sim import open_simulator
from sw.driver import Device

SECONDS = 10.0  #: of processor time that a file may take: the process ends then
MEMORY = 1 << 30  #: bytes that a file may take beyond what the process had before
PARAMS = preset("tiny")
_COMPILED = 4096  #: bytes: smaller models are compiled as well, others only read
_ELEMENTS = 1 << 12  #: of their largest tensor: to compile large layers takes its time, honest or not


@cache
def digits() -> Image:
    """The image of the digits classifier."""
    return caesura.compile(MODEL, PARAMS)


@cache
def _device() -> Device:
    return Device(open_simulator(PARAMS, "model"))


def _take_in(kind: str, path: Path) -> None:
    if kind == "onnx":
        from compiler import import_model

        graph = import_model(path, fallback=True)
        if path.stat().st_size < _COMPILED and max(prod(tensor.shape) for tensor in graph.tensors.values()) < _ELEMENTS:
            caesura.compile(path, PARAMS, fallback=True, jobs=1, cache=False)
    elif kind == "cimg":
        image, device = Image.load(path), _device()
        device.unload(device.load(image))
    elif kind == "npz":
        load_samples(path, digits(), 1)
    elif kind == "toml":
        machine(None, path)
    else:
        raise AssertionError(kind)


def _answer(kind: str, path: Path) -> str:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        _take_in(kind, path)
    except user_errors() as error:
        return f"refused: {type(error).__name__}: {error}"[:300]
    except BaseException:
        return f"TRACEBACK {traceback.format_exc()[-1500:]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "accepted"


def main() -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    _device()
    digits()
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    out = sys.stdout
    sys.stdout = sys.stderr
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        kind, path = json.loads(line)
        print(json.dumps(_answer(kind, Path(path))), file=out, flush=True)


if __name__ == "__main__":
    main()
