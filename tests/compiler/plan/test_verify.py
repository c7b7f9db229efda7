"""A plan that was changed by hand is refused with what is wrong in it, or makes an image that is right."""

import copy
import json
import random
import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from compiler import ir, reference
from compiler.emission.objects.desk import Desk
from compiler.frontend import import_model
from compiler.ir import CompileError
from compiler.pipeline import build, emit, fill
from compiler.plan.json_form import encoded
from compiler.plan.plan import Plan
from compiler.plan.plan_error import PlanError
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, random_inputs, residual_block
from tests.support.image_cases import BUILDS
from tests.support.image_runner import run_image
from tests.support.networks import DIGITS
from tests.support.placed import branchy

TINY = preset("tiny")


@cache
def made(name: str) -> tuple[ir.Graph, dict]:
    """A model, and its plan as a file holds it."""
    if name == "digits":
        graph = import_model(DIGITS)
        return graph, encoded(build(graph, TINY, jobs=1)[1])
    if name in ("residual", "branchy"):
        graph = residual_block(1).graph if name == "residual" else branchy(2, 6, 16)
        return graph, encoded(build(graph, TINY, jobs=1)[1])
    if name == "attention":
        make = GraphBuilder(3)
        make.output(make.attention(24, 2, 16))
        return make.graph, encoded(build(make.graph, TINY, jobs=1)[1])
    graph, params, options = BUILDS[name]()
    return graph, encoded(build(graph, params, options, jobs=1)[1])


def groups(*ends, stripes=1):
    """What changes the groups of heads of ``attention`` into those from each of ``ends`` to the next."""
    product = [op.name for op in made("attention")[0].ops if isinstance(op, ir.Product)][-1]
    return [
        {"kind": "heads", "operator": product, "groups": [[a, b - a] for a, b in pairwise(ends)], "stripes": stripes}
    ]


def edited(fields, path, change):
    """A copy of ``fields`` in which the member at ``path`` is ``change``, or what that makes of it."""
    fields = copy.deepcopy(fields)
    *outer, last = path
    at = fields
    for one in outer:
        at = at[one]
    at[last] = change(at[last]) if callable(change) else change
    return fields


@pytest.fixture
def emitted(tmp_path):
    """The image of a model by a plan as a file holds it."""

    def image(graph, fields):
        (tmp_path / "plan.json").write_text(json.dumps(fields))
        with Desk(1) as desk:
            return emit(fill(Plan.read(tmp_path / "plan.json"), graph, desk)[0], graph, desk)

    return image


def tiling(step, name):
    return ["steps", step, "tiles", 0, "tiling", name]


def buffer(fields, tensor):
    return next(at for at, one in enumerate(fields["memory"]["buffers"]) if tensor in one["tensors"])


def swapped(values):
    return [values[1], values[0], *values[2:]]


MAP1, MAP2 = "map1_QuantizeLinear_Output", "map2_QuantizeLinear_Output"
#: A model, what is changed in its plan, and what the message says: one for each check.
MUTANTS = {
    "structure": ("digits", ["structure"], "0" * 32, "the plan is for another model, 'digits', or for another batch"),
    "hardware": ("digits", ["params", "lv2_bytes"], 12345, "params: .*lv2_bytes"),
    "engines": ("digits", ["options", "engines"], 2, "engines must be 1 to 1 on preset 'tiny', not 2"),
    "a cut of what is not there": ("split", ["rewrites", 0, "operators"], ["x"], "operator 'x' of a cut is not in"),
    "pieces": ("split", ["rewrites", 0, "pieces"], 1, "a cut has 1 pieces, and must have 2 to"),
    "dimension": ("split", ["rewrites", 0, "dimension"], 1, "layer 't2/part0' stands where 't1/0to32/part0' does"),
    "frames of one": ("split", ["rewrites", 0, "dimension"], 0, "a cut is along FRAMES, and must be along height or"),
    "within one": ("split", ["rewrites", 0, "within"], [2, 2], "a cut has pieces of 1 frames, and must be into"),
    "two cuts": ("split", ["rewrites"], lambda cuts: [*cuts, cuts[0]], "is in two cuts"),
    "half a cut": ("split", ["rewrites", 0, "operators"], lambda ops: ops[:-1], "layer .* stands where|made within"),
    "a load": ("digits", ["rewrites"], [{"kind": "load", "input": "x"}], "input 'x' is none of the model's"),
    "heads": ("attention", ["rewrites"], lambda _: groups(0, 1), "groups of .* must cover its 2 heads"),
    "no head": ("attention", ["rewrites"], lambda _: groups(0, 2, 2), "a group of .* has no head"),
    "no stripes": ("attention", ["rewrites"], lambda _: groups(0, 1, 2, stripes=0), "has 0 stripes, and must have 1"),
    "stripes": ("attention", ["rewrites"], lambda _: groups(0, 1, 2, stripes=25), "25 stripes, .* must have 1 to 24"),
    "layers": ("digits", ["layers", 1], "x", "layer 'conv2' stands where 'x' does in the plan"),
    "a layer that is missing": ("digits", ["steps"], lambda steps: steps[1:], "'conv1' is in 0 of them; each layer"),
    "a layer twice": ("digits", ["steps"], lambda steps: [*steps, steps[0]], "'conv1' is in 2 of them; each layer"),
    "a layer of another": ("digits", ["steps", 0, "layers"], ["x"], "'x' is in one, and not in the model"),
    "an empty step": ("digits", ["steps"], lambda s: [{"layers": []}, *s], "step 0 .*: layers is empty"),
    "order": ("digits", ["steps"], swapped, "step 0 reads tensor .* before 'conv1' makes it; put that first"),
    "CPU": ("CPU steps", ["steps"], None, "must stay on its side of .*, which is on the CPU"),
    "places": ("digits", ["steps", 2, "places"], ["any"], "places has 1 values, and must have 2"),
    "a place alone": ("digits", ["steps", 0, "places"], ["any"], "places has 1 values, and must have 0"),
    "an engine": ("digits", ["steps", 2, "places"], [1, 1], "places names engine 1, and must name 0 to 0"),
    "number of tiles": ("digits", ["steps", 0, "tiles"], lambda one: one * 2, "tiles has 2 values, and must have 1"),
    "kind of tiles": ("digits", ["steps", 0, "tiles", 0], {"kind": "rows", "rows": 1}, "of kind 'rows', and must be"),
    "no rows": ("digits", tiling(0, "rows"), 0, "tiles.tiling.rows is 0, and must be 1 at least"),
    "LV0": ("digits", tiling(0, "rows"), 100, "tiles.tiling does not fit in LV0 and LV1"),
    "sizes": ("digits", tiling(0, "act_size"), 72, "tiles.tiling.act_size is 72, and must be 64 beside the others"),
    "chunk": ("digits", tiling(2, "chunk_channels"), 3, "tiles.tiling does not fit in LV0 and LV1"),
    "shape": ("digits", ["steps", 0, "tiles", 0, "shape"], [4, 8], r"tiles.shape is \(4, 8\), and must be \(8, 8\)"),
    "LV1": ("digits", ["steps", 2, "tiles", 1, "channels"], 10**6, "buffers need .* bytes of LV1, .* are there"),
    "job engine": ("digits", ["steps", 0, "jobs", 0, "engine"], 1, r"jobs\[0\].engine is 1, and must be 0 to 0"),
    "number of jobs": ("digits", ["steps", 0, "jobs"], lambda one: one * 2, "step 0 .*: a layer has 1 jobs, in the"),
    "cuts that fall": ("digits", ["steps", 2, "jobs", 0, "cuts"], [9, 3], r"jobs\[0\].cuts must rise from 1 on"),
    "a cut behind all": ("digits", ["steps", 2, "jobs", 0, "cuts"], [10**6], r"jobs\[0\].cuts are .* must be below"),
    "no permutation": ("digits", ["steps", 0, "jobs", 0, "order"], [0, 0], r"jobs\[0\].order must hold each number"),
    "a short order": ("digits", ["steps", 0, "jobs", 0, "order"], [1, 0], "a job has .* instructions, in the plan 2"),
    "staging": ("digits", ["memory", "staging", "base"], 9089, "staging.base is 9089, and must be 0 to .* whole words"),
    "windows": ("digits", ["memory", "windows"], 131072, "tensors, staging and windows take .* bytes of LV2"),
    "few windows": ("digits", ["memory", "windows"], 8, "job_weights is 7360, and must be 0 to windows, 8"),
    "segments": ("digits", ["memory", "sizes"], [[2, 64]], r"sizes are of segments \[2\], and must be of"),
    "negative": ("digits", ["memory", "sizes", 0, 1], -8, r"sizes\[2\] is -8, and must be 0 to"),
    "no home": ("digits", ["memory", "buffers", 1, "tensors"], [], f"tensor '{MAP1}' has 0 buffers; each has one"),
    "a home for nobody": ("digits", ["memory", "buffers", 1, "tensors"], ["x"], "tensor 'x' is not in the model"),
    "shared": ("digits", ["memory", "buffers"], None, "tensors share a buffer that may not"),
    "inside": ("digits", ["memory", "inside"], [[MAP1, MAP2, [0, 0, 0]]], f"inside: tensor '{MAP1}' lies in"),
    "size": ("digits", ["memory", "buffers", 1, "size"], 8, "size is 8, and must be 512 at least"),
    "segment": ("digits", ["memory", "buffers", 0, "segment"], 6, "segment is 6, and must be 2"),
    "alignment": ("digits", ["memory", "buffers", 1, "offset"], 8577, "bytes at offset 8577 must be aligned to 8"),
    "beyond": ("digits", ["memory", "buffers", 1, "offset"], 9080, "bytes at offset 9080 must be .* end by 9088"),
    "pitch": ("digits", ["memory", "buffers", 1, "pitch"], 16, "pitch is 16, and must be 0"),
    "overlap": ("digits", ["memory", "buffers", 2, "offset"], 8576, "share bytes while both live"),
    "in staging": ("digits", ["memory", "staging"], {"base": 8192, "size": 64}, "lies in the staging areas"),
    "exports": ("digits observed", ["memory", "exports"], [], "exports: tensor .* is missing"),
    "copies": ("digits observed", ["memory", "exports", 1, 1], 0, "exports: copies at 0 share bytes with others"),
    "observed": ("digits observed", ["rewrites"], [{"kind": "load", "input": "x"}], "observed models have none"),
}


def mutated(name):
    model, path, change, told = MUTANTS[name]
    graph, fields = made(model)
    if name == "CPU":
        host = next(at for at, one in enumerate(fields["steps"]) if not one["jobs"] and not one["tiles"])
        others = [one for at, one in enumerate(fields["steps"]) if at != host]
        return graph, edited(fields, path, [fields["steps"][host], *others]), told + "|reads tensor"
    if name == "shared":
        one, two = (fields["memory"]["buffers"][at] for at in (1, 2))
        joined = {**one, "tensors": [*one["tensors"], *two["tensors"]]}
        rest = [each for each in fields["memory"]["buffers"] if each not in (one, two)]
        return graph, edited(fields, path, [*rest, joined]), told
    return graph, edited(fields, path, change), told


@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_wrong_in_a_plan_is_named(emitted, name):
    graph, fields, told = mutated(name)
    with pytest.raises(PlanError if name != "engines" else CompileError, match=told):
        emitted(graph, fields)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "null", '{"version": 1}', '{"version": 1, "model": 3}'])
def test_bad_files(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(PlanError, match=r"plan\.json"):
        Plan.read(tmp_path / "plan.json")
    with pytest.raises(PlanError, match="no plan"):
        Plan.read(tmp_path / "other.json")


@pytest.mark.parametrize("step", [0, 3])
def test_an_order_that_is_not_possible_is_refused(emitted, step):
    """Of a layer alone, and of a region."""
    graph, fields = made("digits")
    path = ["steps", step, "jobs", 0, "order"]
    with pytest.raises(PlanError) as told:
        emitted(graph, edited(fields, path, [1, 0]))
    count = int(re.search(r"a job has (\d+) instructions", str(told.value))[1])
    with pytest.raises(PlanError, match="order puts an instruction ahead of one that it needs"):
        emitted(graph, edited(fields, path, list(range(count))[::-1]))


def numbers(value, path=()):
    """Where whole numbers are in a file."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            if key not in ("params", "options", "version"):
                yield from numbers(one, (*path, key))
    elif type(value) is int:
        yield path


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_random_numbers_make_no_wrong_image(emitted, seed):
    rng = random.Random(seed)
    graph, fields = made(("residual", "branchy")[seed % 2])
    places, inputs, right = list(numbers(fields)), random_inputs(graph, 1), 0
    expected = reference.run_all(graph, inputs)
    for _ in range(12):
        mutant = edited(
            fields, rng.choice(places), lambda one: rng.choice((0, 1, one + 1, one - 1, 2 * one, one // 2, -one, 10**9))
        )
        for what in rng.sample(["jobs", "memory", "sizes"], rng.randrange(3)):
            if what == "memory":
                mutant.pop("memory", None)
            elif what == "jobs":
                for step in mutant["steps"]:
                    step.pop("jobs", None)
            else:
                for step in mutant["steps"]:
                    for tiles in step["tiles"]:
                        for name in ("act_size", "weight_size", "out_size", "params_size", "act_slots", "weight_slots"):
                            tiles.get("tiling", {}).pop(name, None)
        try:
            image = emitted(graph, mutant)
        except CompileError:
            continue
        right += 1
        for name, value in run_image(image, inputs).items():
            np.testing.assert_array_equal(value, expected[name])
    assert right < 12


@pytest.mark.parametrize("free", ["memory", "jobs", "tiles", "steps", "rewrites"])
@pytest.mark.parametrize("name", ["digits", "CPU steps", "split", "digits placed"])
def test_what_is_free_is_decided_as_it_was(emitted, name, free):
    """Or as it would be beside what is given."""
    graph, fields = made(name)
    left = copy.deepcopy(fields)
    if free in ("jobs", "tiles"):
        for step in left["steps"]:
            step.pop("jobs")
            if free == "tiles":
                step.pop("tiles")
    else:
        for one in {"rewrites": ["rewrites", "layers", "steps", "memory"], "steps": ["steps", "memory"]}.get(
            free, [free]
        ):
            left.pop(one)
    assert emitted(graph, left).to_bytes() == emitted(graph, fields).to_bytes()
