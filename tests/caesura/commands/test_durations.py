"""``caesura profile``: measured durations end up in the image."""

import json

import caesura
from caesura.samples import random_samples
from hw.image.image import Image
from sw.runtime import past_of
from sw.runtime.reference import measured
from tests.system.command import caesura_command

DIGITS = "examples/digits/digits.onnx"


def test_profile_stores_what_it_measured(tmp_path):
    target = tmp_path / "digits.cimg"
    plain = json.loads(caesura_command("profile", DIGITS, "-o", str(target), "--json")[1])
    assert plain["measured"] and plain["image"] == str(target)
    layers = Image.load(target).meta.layers
    assert all(layer.measured_compute > 0 for layer in layers)
    assert sum(layer.measured_load for layer in layers) > 0
    near = [layer.measured_compute / layer.estimated_compute for layer in layers if layer.macs > 10_000]
    assert near and all(0.5 < ratio < 2 for ratio in near)


def test_info_marks_estimates_until_then(tmp_path):
    target = tmp_path / "digits.cimg"
    assert caesura_command("compile", DIGITS, "-o", str(target))[0] == 0
    assert "(est.)" in caesura_command("info", str(target))[1]
    assert caesura_command("profile", str(target))[0] == 0
    assert "(est.)" not in caesura_command("info", str(target))[1]


def test_a_first_run_measures_for_all_later_ones_and_leaves_files_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("caesura.duration_store.cache_dir", lambda: tmp_path / "cache")
    file = tmp_path / "digits.cimg"
    image = caesura.compile(DIGITS)
    image.save(file)
    content, sample = file.read_bytes(), random_samples(image, 1, 0)[0]
    with caesura.open() as device:
        model = device.load(file)
        assert not measured(model.image)
        model(sample)
        assert measured(model.image)
    assert file.read_bytes() == content
    with caesura.open() as device:
        again, other = device.load(caesura.compile(DIGITS)), device.load(caesura.compile(DIGITS, observe=True))
        assert again.image.meta.layers == model.image.meta.layers
        assert not measured(other.image)  # another program
    (kept,) = (tmp_path / "cache" / "durations").glob("*/*")
    content = kept.read_text()
    for damaged in ("{", "[]", "{}", content.replace("layers", "layer"), *_with_layers(content)):
        kept.write_text(damaged)
        with caesura.open() as device:
            assert not measured(device.load(file).image), damaged[:80]


def _with_layers(content: str) -> list[str]:
    """The same file with layers that cannot be: one lost, without a number, a negative or an endless one."""
    layers = json.loads(content)["layers"]
    last = [layers[-1] | {"measured": times} for times in ([1, 2], [1, -2, 3], [1, 2, 1e400])]
    wrong = [layers[1:], *([*layers[:-1], each] for each in last)]
    return [json.dumps(json.loads(content) | {"layers": case}) for case in wrong]


def test_what_a_model_took_is_what_another_one_is_expected_to_take_the_next_time(tmp_path, monkeypatch):
    monkeypatch.setattr("caesura.duration_store.cache_dir", lambda: tmp_path / "cache")
    image, other = caesura.compile(DIGITS), caesura.compile(DIGITS, observe=True)
    sample = random_samples(image, 1, 0)[0]
    for layer in image.meta.layers:  # so that it is seen who was learned from
        layer.estimated_compute *= 2
    with caesura.open(backend="model") as device:
        device.load(image, tenant="somebody")(sample)
        assert first_costs(device, other) == first_costs(device, other, "nobody")  # what they are is not known to them
    with caesura.open(backend="model") as device:
        known = first_costs(device, other, "somebody")
        assert sum(known) < 0.8 * sum(first_costs(device, other))
    (kept,) = (tmp_path / "cache" / "durations").glob("*/*")
    kept.write_text("{")
    with caesura.open(backend="model") as device:
        assert first_costs(device, other, "somebody") == first_costs(device, other)


def first_costs(device, image, tenant=None):
    """What the layers of ``image`` are expected to compute before they have run."""
    loaded = device.load(image, tenant=tenant).loaded
    expected = past_of(device.driver, tenant).of(loaded.image)
    return [expected(layer).compute for layer in image.meta.layers]
