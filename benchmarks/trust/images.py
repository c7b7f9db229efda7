"""Images with a number at the bound of what it may be: refused if, and only if, rules written by hand say so.

Those that are accepted run beside a victim that is more urgent, so that they are suspended and come back: its results
are exact, everything ends within bounded time, and no byte beside the image's segments changes.
"""

import json
import random
import warnings
from collections import Counter

import numpy as np

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.fleet import PARAMS, Craft, fleet
from benchmarks.trust.image_numbers import CODE_SHARE, change_code, change_one, kinds
from benchmarks.trust.image_rules import ImageFile, packed, why_illegal
from benchmarks.trust.under_test import open_device
from benchmarks.trust.watched_bus import WatchedBus, judged
from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, Op, Segment
from hw.image import Image, ImageError, meta_to_dict
from sw.driver import Device, DriverError, LoadedModel
from sw.runtime import Mechanism, Request, Runtime

_TRIES = 3  #: images of a round
_RUN = 0.25  #: share of rounds in which the last that was accepted runs
_PAGE = 4096  #: bytes in which segments begin
_GUARD_BYTES = 64
_GUARD = bytes([0xA5]) * _GUARD_BYTES
_ARRIVALS = 20_000  #: cycles within which the victim comes
_BEGIN = 1 << 22  #: cycles after which the driver gives up a job that does not begin, as it waits for another in vain
_PATIENCE = 4_000_000 + 3 * _BEGIN  #: cycles within which all ends
_CALLS = 800_000  #: accesses of the host, who looks every few hundred cycles while a dump or restore lasts
_DRIVERS = 32 * 1024  #: bytes of DRAM that the driver takes for programs of its own
_VICTIMS = ("in little LV2", "with weights that stay", "in all of LV2")


class ImageCampaign:
    """Images of the fleet, each with one number changed."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.reached: Counter[str] = Counter()
        self._files = {craft: image_file(each) for craft, each in fleet().items()}
        self._having: dict[str, list[str]] = {}  #: crafts by kind of a number
        for craft in self._files:
            for kind in sorted(kinds(self._image(craft))):
                self._having.setdefault(kind, []).append(craft)
        open_device(PARAMS, backend).close()  # so that it is built

    def close(self) -> None:
        """Nothing is kept between rounds."""

    def round(self, seed: int) -> str:
        """Some images. Raises ``Mismatch``."""
        rng = random.Random(seed)
        accepted: tuple[str, Image] | None = None
        for _ in range(_TRIES):
            name, image = self._asked(rng)
            if image is not None:
                accepted = name, image
        if accepted is None or rng.random() > _RUN:
            return "judged"
        name, image = accepted
        bus = WatchedBus(open_device(PARAMS, self._backend), self.reached)
        try:
            with judged(name), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # parameters that mean nothing overflow
                return _Beside(rng, bus, image, self.reached).run()
        finally:
            bus.close()

    def _image(self, craft: str) -> ImageFile:
        """Its own, to be changed."""
        raw, file = self._files[craft]
        return ImageFile(json.loads(raw), file.code, file.weights, file.host, file.hardware)

    def _asked(self, rng: random.Random) -> tuple[str, Image | None]:
        """What was changed in an image, and the image unless it is refused."""
        if rng.random() < CODE_SHARE:
            kind = rng.choice(list(self._files))
            name, changed = change_code(rng, self._image(kind))
        else:  # each kind of number as often as any other
            name = rng.choice(sorted(self._having))
            kind = rng.choice(self._having[name])
            name, changed = change_one(rng, self._image(kind), name)
        reason = why_illegal(changed)
        try:
            image = Image.from_bytes(packed(changed, json.dumps(changed.meta).encode()))
        except ImageError as error:
            if not reason:
                raise Mismatch(f"{name} of {kind!r} is refused, but legal: {error}") from None
            self.reached[f"refused: {name}"] += 1
            return name, None
        if reason:
            raise Mismatch(f"{name} of {kind!r} is accepted, but illegal: {reason}")
        self.reached[f"accepted: {name}"] += 1
        return f"{name} of {kind!r}", image


def image_file(craft: Craft) -> tuple[str, ImageFile]:
    """Metadata as text, and all that does not change."""
    image = craft.image
    meta = meta_to_dict(image.meta)
    meta["host_sizes"] = [len(model) for model in image.host_models]
    if not meta["segment_sizes"][Segment.SCRATCH]:  # whose first byte is 0: nothing is added
        load = image.code[::INSN_BYTES].index(Op.LD1)
        meta["relocations"] = [{"pc": load, "field": "src", "symbol": "segment4"}]
    return json.dumps(meta), ImageFile({}, image.code, image.weights, image.host_models, PARAMS.to_dict())


class _Beside:
    """An image on ``bus`` beside a victim of another tenant."""

    def __init__(self, rng: random.Random, bus: WatchedBus, image: Image, reached: Counter[str]) -> None:
        self._rng, self._bus, self._image, self._reached = rng, bus, image, reached
        self._device = Device(bus)

    def run(self) -> str:
        """Raises ``Mismatch``."""
        rng, device = self._rng, self._device
        craft = fleet()[rng.choice(_VICTIMS)]
        victim = device.load(craft.named("victim"), [rng.randrange(PARAMS.engines)], tenant="victim")
        free = device.dram.free_bytes, device.lv2.free_bytes
        try:
            attacker = device.load(
                self._image, tenant=rng.choice(("attacker", "victim")), keep_weights=rng.random() < 0.5
            )
        except DriverError:
            return "does not fit"
        guards = self._guard(attacker)
        self._bus.last, self._bus.calls = self._bus.cycle + _PATIENCE, _CALLS
        requests = self._serve(craft, victim, attacker)
        for address in guards:
            if self._bus.read_mem(address, _GUARD_BYTES, charge=False) != _GUARD:
                raise Mismatch(f"bytes from {address:#x} on, which are nobody's, have changed")
            device.dram.free(address)
        device.unload(attacker)
        left = free[0] - device.dram.free_bytes, free[1] - device.lv2.free_bytes
        if left[1] or left[0] > _DRIVERS:
            raise Mismatch(f"{left} bytes of DRAM and LV2 are not given back")
        errors = sum(request.exception() is not None for request in requests)
        self._reached["ran well"] += not errors
        self._reached["suspended"] += any(request.preempted for request in requests)
        return "ran" if not errors else "ran into errors"

    def _guard(self, model: LoadedModel) -> list[int]:
        """Take all that is free before the end of its last segment, which are the bytes behind each, and fill it."""
        last = max(base for number, (base, _) in enumerate(model.segments) if number not in LV2_SEGMENTS)
        guards: list[int] = []
        while not guards or guards[-1] < last + _PAGE:
            guards.append(self._device.dram.allocate(_GUARD_BYTES, 1, "guards"))
            self._bus.write_mem(guards[-1], _GUARD, charge=False)
        return guards

    def _serve(self, craft: Craft, victim: LoadedModel, attacker: LoadedModel) -> list[Request]:
        """Two requests of each, the victim's exact; returns those of the attacker."""
        rng = self._rng
        runtime = Runtime(self._device, preemptive=True, rule=lambda situation: Mechanism.DUMP)
        begin, exact, others = self._bus.cycle, [], []
        for turn in range(2):
            inputs = {
                port.name: np.zeros(port.shape, "float32" if port.quantise else port.dtype)
                for port in attacker.image.meta.inputs
            }
            others.append(runtime.submit(attacker, inputs, arrival=begin + turn))
            sample, arrival = rng.randrange(len(craft.inputs)), begin + rng.randrange(_ARRIVALS)
            inputs = {victim.image.meta.inputs[0].name: craft.inputs[sample : sample + 1]}
            exact.append((runtime.submit(victim, inputs, priority=1, arrival=arrival), sample))
        runtime.run_until_done()
        for request, sample in exact:
            if (error := request.exception()) is not None:
                raise Mismatch(f"the victim's {request.name} ended with {error!r}")
            if not np.array_equal(next(iter(request.result().values()))[0], craft.outputs[sample]):
                raise Mismatch(f"the victim's {request.name} has a wrong result")
        return others
