"""The rules by which the campaign of images judges: a second opinion, not the loader's own."""

import ast
import json
import random
from pathlib import Path

import pytest

from benchmarks.trust import image_rules
from benchmarks.trust.differential import Mismatch
from benchmarks.trust.image_numbers import change_one
from benchmarks.trust.image_rules import why_illegal
from benchmarks.trust.images import ImageCampaign


@pytest.fixture(scope="module")
def campaign():
    return ImageCampaign("model")


def test_rules_know_encodings_and_nothing_of_the_checks():
    tree = ast.parse(Path(image_rules.__file__).read_text())
    modules = {
        node.module: {alias.name for alias in node.names} for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    ours = {name: names for name, names in modules.items() if name.split(".")[0] in ("hw", "sw", "sim", "compiler")}
    assert ours == {"hw.contract.isa": {"Op", "field_place"}}


def test_images_of_the_compiler_are_legal(campaign):
    for raw, file in campaign._files.values():
        assert not why_illegal(
            image_rules.ImageFile(json.loads(raw), file.code, file.weights, file.host, file.hardware)
        )


@pytest.mark.slow
def test_most_kinds_of_numbers_are_both_refused_and_accepted(campaign):
    rng, verdicts = random.Random(7), {}
    for _ in range(400):
        raw, file = rng.choice(list(campaign._files.values()))
        changed = image_rules.ImageFile(json.loads(raw), file.code, file.weights, file.host, file.hardware)
        name, changed = change_one(rng, changed)
        verdicts.setdefault(name, set()).add(bool(why_illegal(changed)))
    assert len(verdicts) > 50
    assert sum(len(seen) == 2 for seen in verdicts.values()) > 25


def test_a_loader_that_lets_one_byte_more_pass_is_found(campaign, monkeypatch):
    monkeypatch.setattr("hw.image.check._tensors", lambda image: iter(()))
    with pytest.raises(Mismatch, match="is accepted, but illegal"):
        for seed in range(200):
            campaign.round(seed)
