"""``caesura bench memory``: what orders, regions and places of tensors make of small on-chip memories.

Bytes are those of the counters: prologues, loads and stores of one inference. What LV2 a model needs is what the
product claims: tensors, staging areas and windows.
"""

import math
from dataclasses import replace
from functools import cache, partial

import caesura
from benchmarks import packing
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab, Run
from benchmarks.workloads import cells, inputs, workload
from compiler import CompileError, MemoryStudy, Options, compile_model, import_model, memory_study
from hw.contract.params import KIB, MIB, preset
from sim import MODEL
from sw.runtime import Runtime

BASE = preset("base")
ONE = Options(engines=1)
NATIVE = "native"
CELLS = tuple(cells.NETWORKS)
#: Those whose cells join what they made, all but the random-wired ones.
JOINED = tuple(name for name in CELLS if "wired" not in name)
MOST = 60  #: operators of a cell whose optimum is to be proved
#: Cycles of the order of the model, one engine, and of the search, two, at ``e56fc10``; bytes that the first moved.
BEFORE = {("nasnet", 512): 751_994, ("nasnet", 256): 891_041, ("mobilenetv2", 256): 1_722_118}
BYTES_BEFORE = 3_528_132
#: Least LV2 without spill in the order of the model, layer by layer, on one engine at ``e56fc10``, to 4 KiB.
LV2_BEFORE = {
    "cell_nasnet_a": 479_232, "cell_amoebanet_a": 413_696, "cell_darts": 454_656, "cell_pnasnet_5": 626_688,
    "cell_wired_1": 188_416, "cell_wired_2": 180_224, "cell_wired_3": 176_128, "cell_wired_4": 188_416,
    "cell_inception": 167_936, "cell_dense": 188_416,
}  # fmt: skip
PARTS = (1 / 2, 3 / 8, 1 / 4, 1 / 8)  #: of what the model's order needs is the room of tensors that is left


def figures() -> list[Figure]:
    """Return the rows; those that compile at several sizes take minutes."""
    return [
        Figure("smallest_lv2", Target(1.3, 1.4, "x"), partial(_smallest, CELLS)),
        Figure("smallest_lv2_joined", Target(1.5, 1.7, "x"), partial(_smallest, JOINED)),
        Figure("orders_proved", Target(90, 95), _proved),
        Figure("order_seconds", Target(5, 1, "s", at_most=True), _seconds),
        Figure("nasnet_512k", Target(5, 12), partial(_fewer, "nasnet", 512, ONE, MODEL)),
        Figure("nasnet_256k", Target(10, 18), partial(_fewer, "nasnet", 256, replace(ONE, trade=0.03), MODEL)),
        Figure("mobilenetv2_256k", Target(35, 42), partial(_fewer, "mobilenetv2", 256, Options(engines=2), NATIVE)),
        Figure("two_tenants", Target(15, 25), _pair),
        *packing.figures(),
        Figure("bytes_above_source", Target(0, 0, at_most=True), _above, optional=True),
        Figure("avoidable_bytes", Target(60, 80), _avoidable, optional=True),
    ]


@cache
def _study(name: str) -> MemoryStudy:
    return memory_study(import_model(workload(name)), BASE, ONE)


def _smallest(names: tuple[str, ...], lab: Lab) -> Measured:
    """Return the geometric mean of the least LV2 without spill in the order of the model at ``e56fc10`` over that in
    the least order now; beside it that of the model's order now, and of tensors alone, without staging and windows."""
    ratios, orders, alive = {}, {}, {}
    for name in names:
        lab.progress.task(f"{name}: orders")
        own, least = _study(name).orders[0], _study(name).least
        assert own.lv2 and least.lv2
        ratios[name], orders[name] = round(LV2_BEFORE[name] / least.lv2, 3), own.lv2 / least.lv2
        alive[name] = own.peak / least.peak
    beside = {"order_alone": round(_mean(orders), 3), "tensors_alone": round(_mean(alive), 3)}
    detail = {"explanation": f"by order alone {beside['order_alone']}", "unit": "x", **beside, **ratios}
    return Measured(_mean(ratios), True, {"measured_on": "prices of plans, base, one engine", **detail})


def _mean(ratios: dict[str, float]) -> float:
    return math.exp(sum(map(math.log, ratios.values())) / len(ratios))


def _proved(lab: Lab) -> Measured:
    """Return the percent of cells of up to ``MOST`` layers whose least peak is proved."""
    small = {name: _study(name).proved for name in CELLS if _layers(name) <= MOST}
    larger = {name: _study(name).proved for name in CELLS if name not in small}
    return Measured(100 * sum(small.values()) / len(small), True, {"unit": "proved", **small, "larger": str(larger)})


def _layers(name: str) -> int:
    return len(cells.NETWORKS[name]().layers)


def _seconds(lab: Lab) -> Measured:
    """Return the CPU seconds of the search for the least order, of the cell for which it takes longest."""
    took = {name: round(memory_study(import_model(workload(name)), BASE, ONE).seconds, 3) for name in CELLS}
    return Measured(max(took.values()), True, {"unit": "s", **took})


def _moved(run: Run) -> int:
    return sum(job.traffic.total.bytes for job in run.stats.jobs)


def _run(here: Lab, name: str, options: Options) -> Run:
    here.progress.task(f"{name}: compiling")
    return here.run_image(name, compile_model(workload(name), BASE, options=options, engines=options.engines))


def _fewer(name: str, kib: int, options: Options, backend: str, lab: Lab) -> Measured:
    """Return by what percent fewer cycles a network takes in so much LV2 than it did at ``e56fc10``."""
    with Lab(BASE, backend, lab.progress) as here:
        run = _run(here, name, replace(options, lv2_limit=kib * KIB))
    before = BEFORE[name, kib]
    detail = {"before": before, "cycles": run.stats.cycles, "bytes": _moved(run), "trade": options.trade}
    right = run.correct and (options.trade == 1 or _moved(run) <= BYTES_BEFORE)
    return Measured(100 * (1 - run.stats.cycles / before), right, {"measured_on": f"{backend}, base", **detail})


def _pair(lab: Lab) -> Measured:
    """Return by what percent fewer cycles two tenants take, side by side in half of 1 MiB of LV2 each, than one of them
    took in as much at ``e56fc10``, alone: then two had no room for all their tensors."""
    params, name, half = BASE.replace(lv2_bytes=MIB), "nasnet", 512 * KIB
    lab.progress.task(f"two times {name}: compiling")
    image = compile_model(workload(name), params, options=replace(ONE, lv2_limit=half), engines=1)
    with caesura.open(params, MODEL) as device:
        models, feed = [device.load(image, "least_used") for _ in range(2)], inputs(name)
        expected = models[0].run(feed)[0]
        runtime, begin = Runtime(device), device.bus.cycle
        requests = [runtime.submit(model, feed) for model in models]
        outputs = [request.result() for request in requests]
        cycles = device.bus.cycle - begin
    right = all((found[port] == value).all() for found in outputs for port, value in expected.items())
    before, least = BEFORE[name, half // KIB], _study(name).orders[0].lv2
    detail = {"before": before, "cycles": cycles, "unspilled_in_the_models_order": least}
    return Measured(100 * (1 - cycles / before), right, {"measured_on": f"{MODEL}, base with 1 MiB of LV2", **detail})


def _sizes(name: str) -> list[int]:
    """Return sizes of LV2 in which the order of the model, layer by layer, has no room for some of its tensors."""
    own = _study(name).orders[0]
    assert own.lv2
    return [int(own.lv2 - (1 - part) * own.peak) // 1024 * 1024 for part in PARTS]


def _above(lab: Lab) -> Measured:
    """Return the percent by which default options move more bytes than the order of the model, regions on both sides,
    where that is most: of any cell in any of the sizes."""
    worst, where, compared, right = -100.0, "", 0, True
    with Lab(BASE, MODEL, lab.progress) as here:
        for name in CELLS:
            for size in _sizes(name):
                try:
                    own, found = (
                        _run(here, name, replace(ONE, lv2_limit=size, order=how)) for how in ("source", "search")
                    )
                except CompileError:  # its tiles need more
                    continue
                compared, right = compared + 1, right and own.correct and found.correct
                more = 100 * (_moved(found) / _moved(own) - 1)
                worst, where = max((worst, where), (more, f"{name} in {size:,} bytes"))
    return Measured(worst, right, {"measured_on": f"{MODEL}, base, one engine", "worst": where, "compared": compared})


def _avoidable(lab: Lab) -> Measured:
    """Return by what percent fewer avoidable bytes ``--objective dram`` moves than the order of the model, mean over
    cells where half of what that order has alive at its peak has no room; layers run one by one on both sides."""
    saved, right = {}, True
    with Lab(BASE, MODEL, lab.progress) as here:
        for name in CELLS:
            size = _sizes(name)[0]
            flat = replace(ONE, regions=False)
            least = _moved(_run(here, name, replace(flat, lv2_limit=BASE.lv2_bytes, order="source")))
            own = _run(here, name, replace(flat, lv2_limit=size, order="source"))
            found = _run(here, name, replace(flat, lv2_limit=size, objective="dram"))
            right = right and own.correct and found.correct
            if _moved(own) > least:
                saved[name] = round(100 * (1 - (_moved(found) - least) / (_moved(own) - least)), 1)
    mean = sum(saved.values()) / len(saved) if saved else 100.0
    return Measured(mean, right, {"measured_on": f"{MODEL}, base, one engine", "unit": "%", **saved})
