"""Carries out ``caesura run`` for a model of one token with its past as inputs, given sequences of tokens."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import typer

from caesura import api, samples as inputs
from caesura.commands.options import chosen_backend
from caesura.compilation import Compilation, image_of
from caesura.samples import Sample, arrays_of
from caesura.step_samples import sequences_of
from caesura.views import Column, ColumnTable, Progress, json_text, say, tell, write
from compiler import CompileError, ModelState, read_model, states_of
from sw.runtime import BatchedConversation, RunStats

_Played = tuple[list[Sample], list[RunStats]]  #: outputs and statistics of the steps of a sequence

_COLUMNS = (
    Column("sequence", number=True),
    Column("steps", number=True),
    Column("cycles", "cycles a step", number=True),
    Column("latency_cycles", "latency", number=True),
    Column("per_second", "steps/s at 1 GHz", number=True),
    Column("check"),
)


def steps_of(model: Path, data: Path | None) -> list[ModelState]:
    """Return the states of a model file with a dynamic dimension, if ``data`` has no values for their pasts."""
    try:
        found = [state for state in states_of(read_model(model)).found if state.label]
    except CompileError:
        return []  # what is wrong is told where the model is compiled
    if not found or data is None:
        return []
    given = arrays_of(data)
    return [] if any(state.past in given for state in found) else found


def run_steps(
    model: Path, compilation: Compilation, states: Sequence[ModelState], data: Path, *, samples: int | None,
    output: Path | None, backend: str | None, check: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run the first ``samples`` sequences of a file, each as a conversation, and print how long a step takes; exit code
    1 if ``check`` finds a step that is not what the reference gives, or an operator beyond its contract."""
    label = states[0].label
    assert label is not None
    ports = _ports(model, states)
    sequences = sequences_of(data, ports, samples)
    sizes = {label: max(max(map(len, sequences)) - 1, 1), **compilation.sizes}
    image = image_of(model, replace(compilation, sizes=sizes))
    backend = chosen_backend(backend, image.params)
    rows, outputs = list[dict[str, Any]](), list[Sample]()
    with Progress() as progress, api.open(image.params, backend, progress=progress.cycles) as device:
        loaded, judge = device.load(image), _Judge(model, sizes, states) if check else None
        play = _together if compilation.sequences > 1 else _one_by_one
        for number, (made, stats) in enumerate(play(loaded, sequences, progress)):
            outputs.append({name: np.stack([one[name] for one in made]) for name in made[0]})
            told = judge.told(sequences[number], made) if judge else None
            rows.append(_row(number, stats, told))
    if output:
        inputs.save_varying(output, outputs)
    _print(rows, f"{image.meta.model} on {image.params.name} ({backend}), {data}, step by step", check, as_json)
    if any(row["check"] not in (None, "equal") for row in rows):
        raise typer.Exit(1)


def _one_by_one(loaded: api.Model, sequences: Sequence[Sequence[Sample]], progress: Progress) -> list[_Played]:
    """Return what each step of each sequence gives, and its statistics."""
    played = list[_Played]()
    for number, sequence in enumerate(sequences):
        with loaded.session() as session:
            steps = list[tuple[Sample, RunStats]]()
            for at, feed in enumerate(sequence):
                progress.task(f"sequence {number + 1} of {len(sequences)}, step {at + 1} of {len(sequence)}")
                steps.append(session.step(feed))
        played.append(([made for made, _ in steps], [stats for _, stats in steps]))
    return played


def _together(loaded: api.Model, sequences: Sequence[Sequence[Sample]], progress: Progress) -> list[_Played]:
    """Return the same where as many sequences as there are places share each step; the next joins when one has
    ended."""
    played: list[_Played] = [([], []) for _ in sequences]
    waiting, going = deque(range(len(sequences))), dict[BatchedConversation, int]()
    with loaded.batch() as batch:
        while waiting or going:
            while waiting and len(going) < batch.places:
                going[batch.join()] = waiting.popleft()
            feeds = {member: sequences[number][len(played[number][0])] for member, number in going.items()}
            progress.task(f"{len(waiting)} of {len(sequences)} sequences wait, {len(going)} share a step")
            outputs, stats = batch.step(feeds)
            for member, number in list(going.items()):
                made, spent = played[number]
                made.append(outputs[member])
                spent.append(stats)
                if len(made) == len(sequences[number]):
                    del going[member]
                    member.close()
    return played


class _Port:
    def __init__(self, value: onnx.ValueInfoProto) -> None:
        tensor = value.type.tensor_type
        self.name, self.shape = value.name, [dim.dim_value or 1 for dim in tensor.shape.dim]
        self.dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name


def _ports(model: Path, states: Sequence[ModelState]) -> list[_Port]:
    """Return what a step is given beside its past."""
    proto = read_model(model)
    left = {tensor.name for tensor in proto.graph.initializer} | {state.past for state in states}
    return [_Port(value) for value in proto.graph.input if value.name not in left]


class _Judge:
    """Holds steps against the reference, and the operators of the last step against onnxruntime."""

    def __init__(self, model: Path, sizes: Mapping[str, int], states: Sequence[ModelState]) -> None:
        from compiler import import_model

        self._graph = import_model(model, sizes=sizes)
        self._presents = {state.past: state.present for state in states}
        self._lengths = self._graph.numbers.keys() - {port.tensor for port in self._graph.inputs}

    def told(self, sequence: Sequence[Sample], made: Sequence[Sample]) -> str:
        """Return ``equal``, or what differs first."""
        from compiler import reference

        graph = self._graph
        ports = [port for port in graph.inputs if port.name in self._presents]
        past: Sample = {port.name: np.zeros(port.shape, port.dtype) for port in ports}
        values: dict[str, npt.NDArray] = {}
        for at, (feed, found) in enumerate(zip(sequence, made, strict=True)):
            values = reference.run_all(graph, {**feed, **past, **dict.fromkeys(self._lengths, np.array([at]))})
            results = {port.name: reference.from_memory(port, values[port.tensor], graph) for port in graph.outputs}
            for name, value in found.items():
                if not np.array_equal(value, results[name]):
                    return f"step {at}: {name} differs"
            past = {name: results[self._presents[name]][tuple(map(slice, past[name].shape))] for name in past}
        wrong = self._beyond(values)
        return f"{', '.join(wrong)}: beyond the contract" if wrong else "equal"

    def _beyond(self, values: Mapping[str, npt.NDArray]) -> list[str]:
        """Return the operators that do not keep to their contracts; of a state that is not full, onnxruntime cannot
        judge what leaves rows out."""
        from compiler import golden, ir

        graph = self._graph
        full = all(int(values[name][0]) == graph.numbers[name].high for name in self._lengths)
        judged = [op for op in graph.ops if golden.judged(graph, op)]
        if not full:
            judged = [op for op in judged if not (isinstance(op, ir.Append) or set(op.inputs) & self._lengths)]
        checks = [golden.check_layer(graph, op, values, values[op.output]) for op in judged]
        return [check.name for check in checks if not check.ok]


def _row(number: int, stats: Sequence[RunStats], told: str | None) -> dict[str, Any]:
    latency = median(one.latency for one in stats)
    return {
        "sequence": number, "steps": len(stats), "cycles": int(median(one.cycles for one in stats)),
        "latency_cycles": int(latency), "per_second": int(1e9 / latency), "check": told,
    }  # fmt: skip


def _print(rows: Sequence[dict[str, Any]], head: str, check: bool, as_json: bool) -> None:
    table = ColumnTable("", _COLUMNS, rows)
    if as_json:
        write(json_text({"run": head, "sequences": table.fields()}))
        return
    say(head)
    tell((table if check else table.without("check")).rich())
