"""What the cache keeps is made again when a source changes, in whatever language, and is worth what a fresh one is."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import caesura
from caesura import duration_store
from caesura.sweep import run as sweep_run
from compiler.emission.objects import object_store
from hw.contract.params import preset
from sim.cache_folder import sources_digest
from tests.support.networks import DIGITS

ROOT = Path(__file__).parents[2]
TINY = preset("tiny")
KEPT = {"objects": object_store._SOURCES, "sweeps": sweep_run._SOURCES, "durations": duration_store._SOURCES}
COMPILED = sorted(path for suffix in ("*.c", "*.h", "*.cc") for path in (ROOT / "sim").rglob(suffix))


@pytest.mark.parametrize("kept", ["sweeps", "durations"])
def test_a_changed_c_file_changes_what_is_kept_by_its_name(tmp_path, kept):
    assert len(COMPILED) > 5
    assert _changed(tmp_path, KEPT[kept], COMPILED) == COMPILED


def test_a_changed_c_file_of_the_compiler_makes_its_objects_stale(tmp_path):
    mine = [path for path in COMPILED if path.is_relative_to(ROOT / "sim" / "cost")]
    assert len(mine) > 1
    assert _changed(tmp_path, KEPT["objects"], COMPILED) == mine


def _changed(folder: Path, sources: tuple[str, ...], paths: list[Path]) -> list[Path]:
    """Those of ``paths`` a change of which is seen."""
    for source in sources:
        shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__"))
    before, found = _digest(sources, folder), []
    assert before == _digest(sources, ROOT)
    for path in paths:
        copy = folder / path.relative_to(ROOT)
        if copy.exists():
            raw = copy.read_bytes()
            copy.write_bytes(raw + b"\n")
            if _digest(sources, folder) != before:
                found.append(path)
            copy.write_bytes(raw)
    return found


def _digest(sources: tuple[str, ...], root: Path) -> str:
    sources_digest.cache_clear()
    try:
        return sources_digest(*sources, root=root)
    finally:
        sources_digest.cache_clear()


@pytest.mark.parametrize("order", ["search", "timed"])
def test_a_filled_cache_gives_what_an_empty_one_gives(tmp_path, monkeypatch, order):
    """The same image, and the same cycles and outputs of a run of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = caesura.Options(order=order)
    results = []
    for _ in range(2):
        image = caesura.compile(DIGITS, TINY, options=options)
        with caesura.open(TINY, "model") as device:
            port = image.meta.inputs[0]
            value = np.arange(np.prod(port.shape), dtype=np.int64).reshape(port.shape) % 127
            outputs, stats = device.load(image).run({port.name: value.astype(port.dtype)})
        results.append((image.to_bytes(), stats.cycles, {name: out.tobytes() for name, out in outputs.items()}))
        assert list((tmp_path / "caesura").rglob("*.layer"))
    assert results[0] == results[1]
