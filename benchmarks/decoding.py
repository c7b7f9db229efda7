"""Rows of ``caesura bench language`` about whole decoders: one token after the other, over keys and values that stay in
device memory.

A step is compared with the reference, whose operators are held against onnxruntime on the inputs that they had. Cycles
count from the start of the first prologue or body to the end of the last body; nothing runs ahead into the next token.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import onnx

import caesura
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import ALONE, Lab, Run, compare_by_operator
from benchmarks.preemption import CYCLES_PER_US, INTERVAL, on_chip_bytes
from benchmarks.switches import SEED, interruptions, stratified
from benchmarks.utilisation import run_detail
from benchmarks.workloads import decoder_steps, inputs, workload
from benchmarks.workloads.cache import cached
from benchmarks.workloads.decoder_steps import DecoderStep
from compiler import ALL_LV2, Graph, Options, import_model, reference
from examples.words import MODEL as WORDS
from examples.words.device import Interrupted, TokenStep, Undisturbed, compiled as compiled_words
from examples.words.reference import IntegerStepper
from examples.words.text import held_out
from hw.image import Image
from sw.runtime import Conversation, Mechanism, Request, Runtime

_WORKLOAD_SEED = 2024
_MIB = 1 << 20
_ENGINES = 1  #: two meet in banks of DRAM, which costs more than they save
_TOGETHER = 4  #: sequences that share a step
_STEPS = 10  #: of the conversation that is interrupted
_ARRIVALS = 150
_URGENT = "conv_32x14x14_64_k3_s1_p1"
_TOKENS = 3  #: of which the median counts where their time on this computer is measured
_WORDS = 200  #: tokens of the text of which each is interrupted


def figures() -> list[Figure]:
    """Return the rows, in the order of the report. All of SmolLM2 is measured on the fast model, with more DRAM than
    ``base`` has."""
    halts = _Halts()
    rows: list[tuple[str, Target, Callable[..., Measured]]] = [
        ("decode_15m", Target(86, 90), partial(of_bandwidth, name="stories15m_context256")),
        ("decode_smollm2_135m", Target(88, 92), _smollm2),
        ("four_sequences_15m", Target(3.2, 3.35, "x"), partial(of_four, name="stories15m_context256")),
        ("four_sequences_smollm2", Target(3.5, 3.7, "x"), _smollm2_of_four),
        ("token_seconds_15m", Target(8, 4.5, "s", at_most=True), partial(token_seconds, name="stories15m_context256")),
        ("cold_block_gpt2", Target(1.4, 1.25, "x", at_most=True), _cold_block),
        ("prefill_15m", Target(70, 85), _prefill),
        ("decoding_halt_p99", Target(6, 5, "us", at_most=True), halts.halting),
        ("decoding_bytes_dumped", Target(2, 1, "%", at_most=True), halts.dumped),
        ("words_exact", Target(100, 100), words_exact),
    ]
    return [Figure(name, target, measure) for name, target, measure in rows]


def compiled(
    step: DecoderStep, lab: Lab, options: Options = ALONE, sequences: int = 1
) -> tuple[Image, Graph]:  # fmt: skip
    """Return the image of ``step`` for the hardware of ``lab``, and its graph. Attention of several ``sequences`` takes
    long enough to be shared by engines."""
    path = cached(
        f"{step.name}_open", (_WORKLOAD_SEED, step, onnx.__version__),
        lambda file: onnx.save(decoder_steps.model(step, _WORKLOAD_SEED), file),
    )  # fmt: skip
    sizes = {decoder_steps.PAST: step.context - 1}
    lab.progress.task(f"{step.name}: compiling")
    engines = _ENGINES if sequences == 1 else lab.params.engines
    image = caesura.compile(path, lab.params, engines=engines, options=options, sizes=sizes, sequences=sequences)
    return image, import_model(path, sizes=sizes, sequences=sequences)


def measured(step: DecoderStep, lab: Lab) -> Run:
    """Return one token with a past that fills the context."""
    image, graph = compiled(step, lab)
    feed = decoder_steps.inputs(step, (_WORKLOAD_SEED, 1, 0))
    model = lab.device.load(image)
    lab.progress.task(step.name)
    outputs, stats = model.run(feed)
    lab.device.unload(model)
    correct, verdict = compare_by_operator(graph, feed, outputs)
    return Run(step.name, image, stats, 0.0, stats.cycles, correct, verdict)


def of_bandwidth(lab: Lab, name: str) -> Measured:
    """Return the percent of the bandwidth of DRAM that weights, keys and values of a token take."""
    step = decoder_steps.parse(name)
    assert step is not None
    run = measured(step, lab)
    moved = step.decoder.weight_bytes + step.cache
    bound = moved / run.image.params.dram_bytes_per_cycle
    detail = {**run_detail(run), "of": "the bytes of weights, keys and values over those that DRAM moves in a cycle"}
    detail |= {"weights": step.decoder.weight_bytes, "cache": step.cache, "code": len(run.image.code)}
    return Measured(100 * bound / run.stats.cycles, run.correct, detail)


def token_seconds(lab: Lab, name: str) -> Measured:
    """Return the seconds that this computer takes to simulate a token, from writing its inputs to reading the scores:
    the median of several. The simulator was built, and the model compiled, before."""
    step = decoder_steps.parse(name)
    assert step is not None
    image, graph = compiled(step, lab)
    feed = decoder_steps.inputs(step, (_WORKLOAD_SEED, 1, 0))
    model, seconds, cycles = lab.device.load(image), list[float](), 0
    lab.progress.task(f"{step.name}, {_TOKENS} times")
    for _ in range(_TOKENS):
        begin, cycle = perf_counter(), lab.device.bus.cycle
        outputs, _ = model.run(feed)
        seconds.append(perf_counter() - begin)
        cycles = lab.device.bus.cycle - cycle
    lab.device.unload(model)
    correct, verdict = compare_by_operator(graph, feed, outputs)
    told = f"{cycles:,} simulated cycles, {cycles / median(seconds) / 1e3:,.0f} thousand a second"
    detail = {"explanation": told, "least": min(seconds), "most": max(seconds), "outputs": verdict}
    return Measured(median(seconds), correct, {**detail, "workload": name, "simulated_cycles": cycles})


def _smollm2(lab: Lab) -> Measured:
    with Lab(replace(lab.params, dram_bytes=256 * _MIB), "model", lab.progress) as other:
        return of_bandwidth(other, "smollm2_135m_context256")


def of_four(lab: Lab, name: str) -> Measured:
    """Return how many times as many tokens a second four sequences together have as one."""
    step = decoder_steps.parse(name)
    assert step is not None
    one = measured(step, lab)
    image, _ = compiled(step, lab, sequences=_TOGETHER)
    alone = compiled(step, lab)[1]
    feeds = [decoder_steps.inputs(step, (_WORKLOAD_SEED, 1, i)) for i in range(_TOGETHER)]
    model = lab.device.load(image)
    lab.progress.task(f"{step.name}, {_TOGETHER} sequences")
    outputs, stats = model.run({f"{key}.{i}": value for i, feed in enumerate(feeds) for key, value in feed.items()})
    lab.device.unload(model)
    correct = one.correct and _equal_alone(alone, feeds, outputs)
    run = Run(step.name, image, stats, 0.0, stats.cycles, correct, "")
    moved = (step.decoder.weight_bytes + _TOGETHER * step.cache) / image.params.dram_bytes_per_cycle
    detail = run_detail(run) | {"cycles_alone": one.stats.cycles, "of_bandwidth": round(100 * moved / stats.cycles, 2)}
    return Measured(_TOGETHER * one.stats.cycles / stats.cycles, correct, detail)


def _equal_alone(graph: Graph, feeds: Sequence[dict[str, Any]], outputs: dict[str, Any]) -> bool:
    """Return whether each sequence gives what the reference gives for it alone."""
    equal = True
    for i, feed in enumerate(feeds):
        for name, value in reference.run(graph, feed).items():
            found = outputs[name][i : i + 1] if name in outputs else outputs[f"{name}.{i}"]
            equal &= np.array_equal(found, value)
    return equal


def _smollm2_of_four(lab: Lab) -> Measured:
    with Lab(replace(lab.params, dram_bytes=256 * _MIB), "model", lab.progress) as other:
        return of_four(other, "smollm2_135m_context256")


def _cold_block(lab: Lab) -> Measured:
    """Return the cycles of one block of GPT-2's shape, nothing of which is on chip, over those in which DRAM brings its
    weights, keys and values."""
    step = decoder_steps.parse("gpt2_block_context256")
    assert step is not None
    run = measured(step, lab)
    bound = (step.decoder.weight_bytes + step.cache) / run.image.params.dram_bytes_per_cycle
    return Measured(run.stats.cycles / bound, run.correct, run_detail(run) | {"bound": bound})


def _prefill(lab: Lab) -> Measured:
    """Return the utilisation of the MAC peak of a layer over 128 tokens, the heads of queries and keys turned, in
    percent."""
    name = "stories15m_1_prompt128"
    lab.progress.task(f"{name}: compiling")
    run = lab.run_image(name, caesura.compile(workload(name), lab.params, options=ALONE), within_contracts=True)
    return Measured(run.utilisation, run.correct, run_detail(run))


@dataclass
class _Halts:
    """A conversation that urgent inferences interrupt at random times, measured when the first row asks for it."""

    _known: dict[int, tuple[list[float], list[float], bool]] = field(default_factory=dict)

    def halting(self, lab: Lab) -> Measured:
        """Return the time from a pause until the engine has halted, in 99 of 100 cases."""
        times, _, correct = self._of(lab)
        return Measured(float(np.percentile(times, 99)), correct, {"switches": len(times), "max": max(times)})

    def dumped(self, lab: Lab) -> Measured:
        """Return the median of the bytes that a switch dumps, in percent of all on chip."""
        _, shares, correct = self._of(lab)
        return Measured(float(np.median(shares)), correct, {"switches": len(shares), "max": round(max(shares), 2)})

    def _of(self, lab: Lab) -> tuple[list[float], list[float], bool]:
        if id(lab) not in self._known:
            self._known[id(lab)] = _interrupted(lab)
        return self._known[id(lab)]


def _interrupted(lab: Lab) -> tuple[list[float], list[float], bool]:
    """Return microseconds from pause to HALTED, percent of the on-chip bytes that were dumped, and whether each step
    gave what it gives alone."""
    step = decoder_steps.parse("stories15m_2_head_context256")
    assert step is not None
    image, _ = compiled(step, lab, replace(ALONE, cancel_interval=INTERVAL))
    driver, rng = lab.device.driver, random.Random(SEED)
    tokens = [rng.randrange(step.decoder.vocabulary) for _ in range(_STEPS)]
    model = driver.load(image)
    urgent = driver.load(caesura.compile(workload(_URGENT), lab.params, options=Options(lv2_limit=256 << 10)))
    lab.progress.task(f"{step.name} alone")
    with Conversation(driver, model) as alone:
        expected = [alone.step({decoder_steps.IDS: token}) for token in tokens]
    span = sum(stats.cycles for _, stats in expected)
    lab.progress.task(f"{step.name} with {_ARRIVALS} urgent arrivals")
    correct, requests, arrivals = True, list[Request](), list[Request]()
    with (
        Conversation(driver, model) as session,
        Runtime(driver, "fcfs", preemptive=True, rule=lambda _: Mechanism.DUMP, history=None) as runtime,
    ):
        begin = driver.bus.cycle
        for at in stratified(rng, 2 * span, _ARRIVALS):
            given = inputs(_URGENT)
            arrivals.append(runtime.submit(urgent, given, priority=1, arrival=begin + at))
        for token, (wanted, _) in zip(tokens, expected, strict=True):
            request = runtime.submit(session, {decoder_steps.IDS: token})
            requests.append(request)
            found = request.result()
            correct &= all(np.array_equal(found[name], value) for name, value in wanted.items())
        runtime.run_until_done()
        spans = runtime.spans()
    found_breaks = [one for request in requests for one in interruptions(spans, request)]
    driver.unload(model)
    driver.unload(urgent)
    if not found_breaks:
        raise LookupError(f"{step.name} was never interrupted: raise its arrivals")
    times = [(one.halted - one.sent) / CYCLES_PER_US for one in found_breaks]
    everything = on_chip_bytes(lab.params)
    shares = [100 * sum(span.bytes for span in one.dumps) / everything for one in found_breaks]
    return times, shares, correct and all(other.error is None for other in arrivals)


def words_exact(lab: Lab, count: int = _WORDS) -> Measured:
    """Return the percent of tokens of a held-out text, read by a trained decoder, that were interrupted and whose
    scores equal those of the undisturbed run and those of the reference, bit for bit. The urgent model overwrites what
    lies in LV2."""
    lab.progress.task(f"{WORDS.stem}: compiling")
    image = compiled_words("int8", lab.params, ALL_LV2)
    tokens, exact = held_out()[:count].tolist(), IntegerStepper(WORDS)
    expected = [exact.step(token) for token in tokens]
    model = lab.device.load(image)
    lab.progress.task(f"{WORDS.stem} alone")
    with Undisturbed(model) as steps:
        alone = [steps.step(token) for token in tokens]
    lab.progress.task(f"{WORDS.stem}, interrupted {count} times")
    cycles = _median_latency(alone)
    with Interrupted(lab.device, model, cycles) as again:
        made = [again.step(token) for token in tokens]
    lab.device.unload(model)
    equal = sum(
        step.interrupted > 0 and np.array_equal(step.scores, other.scores) and np.array_equal(step.scores, wanted)
        for step, other, wanted in zip(made, alone, expected, strict=True)
    )
    told = f"{count:,} tokens of {cycles:,.0f} cycles, {_median_latency(made):,.0f} with an interruption"
    detail = {"explanation": told, "interrupted": sum(step.interrupted > 0 for step in made)}
    return Measured(100 * equal / count, again.correct == count, detail)


def _median_latency(steps: Sequence[TokenStep]) -> float:
    return median(step.latency for step in steps)
