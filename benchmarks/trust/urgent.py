"""An urgent request is served whatever one lower image does: its result is exact, and comes within bounded time.

The lower image lies about how long it takes, calls everything live, has reload lists and prologues that never end,
waits for events that never come, or stands wherever a number at the bound of what is legal takes it.
"""

import json
import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.fleet import PARAMS, Craft, fleet
from benchmarks.trust.image_numbers import change_one
from benchmarks.trust.image_rules import ImageFile, packed, why_illegal
from benchmarks.trust.images import image_file
from benchmarks.trust.under_test import open_device
from benchmarks.trust.watched_bus import WatchedBus, judged
from hw.contract.bus import HostCosts
from hw.contract.isa import Insn, Op
from hw.image import Image
from sw.driver import Device, OutOfEvents, OutOfMemory
from sw.runtime import Mechanism, Runtime, choose

_BODY = 100_000  #: cycles that a body of the lower image may take
#: Cycles after which the driver gives up a job that does not begin, counted from when it knows that those before have
#: ended, of which no interrupt may have told: it looks when it would have given up the one before.
_BEGIN = 1 << 22
_SERVED = 400_000  #: cycles within which an urgent request ends behind what a lower one may hold up
_FIRST, _SECOND = 20_000, 300_000  #: cycles within which the two urgent requests come
_CALLS, _SLOW_CALLS = 60_000, 800_000  #: accesses of the host
_LIES = (0, 1, 2**40)
_RELOADS = 360
_URGENT = ("in little LV2", "with weights that stay", "in all of LV2", "on two engines", "placed")
_LOWER = ("in little LV2", "in all of LV2", "on two engines", "placed", "with long bodies", "with long bodies")
_ENDLESS = {"src_seg": 2, "dst_seg": 6, "len": 8, "n0": 65535, "n1": 4}
Meta = dict[str, Any]


class UrgentCampaign:
    """Every round has a device of its own."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.reached: Counter[str] = Counter()
        self._files = {kind: image_file(fleet()[kind]) for kind in _LOWER}
        open_device(PARAMS, backend).close()  # so that it is built

    def close(self) -> None:
        """Nothing is kept between rounds."""

    def round(self, seed: int) -> str:
        """Two urgent requests beside a lower image. Raises ``Mismatch``."""
        rng = random.Random(seed)
        tricks, image = self._hostile(rng)
        self.reached.update(tricks)
        costs = rng.choice((HostCosts(), HostCosts(), HostCosts.free()))
        bus = WatchedBus(open_device(PARAMS, self._backend, costs), self.reached)
        try:
            with judged(" and ".join(tricks)), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # parameters that mean nothing overflow
                return self._served(rng, bus, image, slow=bool(_SLOW.intersection(tricks)))
        finally:
            bus.close()

    def _hostile(self, rng: random.Random) -> tuple[list[str], Image]:
        """A legal image with one to three tricks in it, and their names."""
        while True:
            raw, file = self._files[rng.choice(_LOWER)]
            image = ImageFile(json.loads(raw), file.code, file.weights, file.host, file.hardware)
            image.meta.pop("weights_only", None)
            tricks = rng.choices(list(_TRICKS), [weight for _, weight in _TRICKS.values()], k=rng.choice((1, 1, 2, 3)))
            for trick in tricks:
                image = _TRICKS[trick][0](rng, image)
            if not why_illegal(image):
                return tricks, Image.from_bytes(packed(image, json.dumps(image.meta).encode()))

    def _served(self, rng: random.Random, bus: WatchedBus, image: Image, *, slow: bool) -> str:
        device = Device(bus)
        craft = fleet()[rng.choice(_URGENT)]
        urgent = device.load(craft.named("urgent"), tenant=rng.choice((None, "urgent")))
        try:
            lower = device.load(image, tenant=rng.choice((None, "lower")), body_cycles=_BODY)
        except (OutOfEvents, OutOfMemory):
            return "does not fit"
        runtime = Runtime(device, preemptive=True, rule=rng.choice((choose, lambda situation: Mechanism.DUMP)))
        now = bus.cycle
        ports = lower.image.meta.inputs
        inputs = {port.name: np.zeros(port.shape, "float32" if port.quantise else port.dtype) for port in ports}
        patience = _SERVED + 2 * len(image.meta.jobs) * _BODY + 3 * _BEGIN * slow
        bus.last, bus.calls = now + _SECOND + 2 * patience, _SLOW_CALLS if slow else _CALLS
        below = runtime.submit(lower, inputs)
        served = [self._submit(rng, runtime, craft, urgent, now + rng.randrange(most)) for most in (_FIRST, _SECOND)]
        runtime.run_until_done()
        for request, sample in served:
            if (error := request.exception()) is not None:
                raise Mismatch(f"the urgent {request.name} ended with {error!r}")
            if not np.array_equal(next(iter(request.result().values()))[0], craft.outputs[sample]):
                raise Mismatch(f"the urgent {request.name} has a wrong result")
            took = request.ended - request.arrival
            if took > (allowed := _SERVED + _BODY + 2 * _BEGIN * slow):
                raise Mismatch(f"the urgent {request.name} took {took} cycles, not {allowed}")
        self.reached["lower one was suspended"] += bool(below.preempted)
        return "the lower one ended well" if below.exception() is None else "the lower one failed"

    @staticmethod
    def _submit(rng: random.Random, runtime: Runtime, craft: Craft, model: Any, arrival: int) -> tuple[Any, int]:
        sample = rng.randrange(len(craft.inputs))
        inputs = {model.image.meta.inputs[0].name: craft.inputs[sample : sample + 1]}
        announced = rng.random() < 0.2
        return runtime.submit(model, inputs, priority=1, arrival=arrival, announced=announced), sample


# -- tricks ------------------------------------------------------------------------------------------------------
def _with_code(image: ImageFile, *insns: Insn) -> tuple[ImageFile, int]:
    """The image with a program behind its own, and the PC of that."""
    code = image.code + b"".join(insn.encode() for insn in insns)
    image.meta["segment_sizes"][0] = max(image.meta["segment_sizes"][0], len(code))
    return ImageFile(image.meta, code, image.weights, image.host, image.hardware), image.count


def _lies(rng: random.Random, image: ImageFile) -> ImageFile:
    for layer in image.meta["layers"]:
        for name in layer:
            if name.startswith(("estimated_", "measured_")):
                layer[name] = rng.choice(_LIES)
    for job in image.meta["jobs"]:
        job["worst_cycles"] = rng.choice(_LIES)
    for point in image.meta["cancel_points"]:
        point["estimated_interval"], point["worst_interval"] = rng.choice(_LIES), rng.choice(_LIES)
    return image


def _all_live(rng: random.Random, image: ImageFile) -> ImageFile:
    hardware, sizes = image.hardware, image.meta["segment_sizes"]
    acc = 4 * hardware["pes"] * hardware["cols"] * hardware["lv0_acc_rows"]
    everything = [("lv1", 0, hardware["lv1_bytes"]), ("lv0_acc", 0, acc), ("lv2", 6, sizes[6]), ("lv2", 7, sizes[7])]
    live = [
        {"space": space, "segment": segment, "offset": 0, "size": size, "dirty": True}
        for space, segment, size in rng.sample(everything, rng.randint(1, 4))
    ]
    for entry in (*image.meta["jobs"], *image.meta["cancel_points"]):
        if rng.random() < 0.8:
            entry["live"] = live
    return image


def _reload_lists(rng: random.Random, image: ImageFile) -> ImageFile:
    image, pc = _with_code(image, Insn(Op.LD2, _ENDLESS), Insn(Op.END))
    loads = [i for i in range(image.count) if image.op(i) in (Op.LD2, Op.LD1, Op.LD0)]
    for point in image.meta["cancel_points"]:
        point["reload"] = rng.choice(([pc], [pc] * _RELOADS, rng.choices(loads, k=_RELOADS)))
    return image


def _endless_prologue(rng: random.Random, image: ImageFile) -> ImageFile:
    image, pc = _with_code(image, *[Insn(Op.LD2, _ENDLESS)] * 64, Insn(Op.END))
    rng.choice(image.meta["jobs"])["prologue_pc"] = pc
    return image


def _endless_body(rng: random.Random, image: ImageFile) -> ImageFile:
    image, pc = _with_code(image, *[Insn(Op.LD2, _ENDLESS)] * 64, Insn(Op.END))
    rng.choice(image.meta["jobs"])["body_pc"] = pc
    return image


def _stuck_body(rng: random.Random, image: ImageFile) -> ImageFile:
    image, pc = _with_code(image, Insn(Op.LD2, {"src_seg": 2, "dst_seg": 6, "wait": 1}), Insn(Op.END))
    rng.choice(image.meta["jobs"])["body_pc"] = pc
    return image


def _endless_wait(rng: random.Random, image: ImageFile) -> ImageFile:
    if not image.meta.get("parts"):
        image.meta["events"] = image.meta.get("events", 0) + 1
        rng.choice(image.meta["jobs"])["waits"] = [[image.meta["events"] - 1, rng.randint(1, len(image.meta["jobs"]))]]
    return image


def _odd_windows(rng: random.Random, image: ImageFile) -> ImageFile:
    for job in image.meta["jobs"]:
        job["window_after"] = rng.choice((0, 1, 65535))
    return image


def _odd_numbers(rng: random.Random, image: ImageFile) -> ImageFile:
    for _ in range(3):
        if not why_illegal(image):  # numbers of what is not an image have no bounds
            _, image = change_one(rng, image)
    return image


#: What a lower image does, and how often; slow ones hold an engine up until the driver gives their job up.
_TRICKS: dict[str, tuple[Callable[[random.Random, ImageFile], ImageFile], float]] = {
    "lies": (_lies, 20), "all is live": (_all_live, 20), "reload lists": (_reload_lists, 20),
    "stuck body": (_stuck_body, 8), "endless body": (_endless_body, 8), "odd windows": (_odd_windows, 8),
    "odd numbers": (_odd_numbers, 20), "endless prologue": (_endless_prologue, 1), "endless wait": (_endless_wait, 2),
}  # fmt: skip
_SLOW = {"endless prologue", "endless wait", "odd windows", "odd numbers"}
