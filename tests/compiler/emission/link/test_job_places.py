"""Weight windows of compiled graphs, all over LV2: results, promises, and preemption between any two instructions."""

import itertools

import numpy as np
import pytest

from compiler import ir, reference
from compiler.ir import CompileError
from compiler.pipeline import build
from compiler.plan.options import Options
from hw.contract.isa import Segment
from hw.contract.params import KIB, SocParams, preset
from hw.image.image import Image
from tests.support.check.preemption import check_points
from tests.support.check.races import RaceChecker
from tests.support.check.windows import window_clashes
from tests.support.graphs import late_weights, random_inputs
from tests.support.image_runner import run_image
from tests.support.placed import branchy
from tests.support.sampled import sampled

TINY = preset("tiny")
TWO, FOUR = TINY.replace(engines=2), TINY.replace(engines=4)
_POINTS = 12  #: of one image that are checked


def _checked(graph: ir.Graph, params: SocParams, seed: int, limit: int, points: int = _POINTS) -> Image | None:
    """The image of ``graph`` for all engines with ``limit`` bytes of LV2, checked in every way; None if that is too
    little."""
    try:
        image, _ = build(graph, params, Options(engines=params.engines, lv2_limit=limit, cancel_interval=400))
    except CompileError as error:
        assert "larger lv2_limit" in str(error) or "larger lv2_bytes" in str(error)
        return None
    image = Image.from_bytes(image.to_bytes())
    inputs = random_inputs(graph, seed)
    expected = reference.run_all(graph, inputs)
    for name, value in run_image(image, inputs, observer=RaceChecker(params)).items():
        assert np.array_equal(value, expected[name]), f"tensor {name} of {graph.name}"
    assert window_clashes(image, inputs) == []
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(image.meta.cancel_points), min(points, len(image.meta.cancel_points)), replace=False)
    lagging = int(rng.integers(params.engines)) if params.engines > 1 else None
    report = check_points(image, inputs, set(chosen.tolist()), seed, lagging_engine=lagging)
    assert report.ok, report
    return image


@pytest.mark.parametrize("seed", sampled(range(6), 3))
def test_random_graphs(seed):
    print("seed", seed)
    params = (TINY, TWO, FOUR)[seed % 3]
    _checked(branchy(seed, 8, 24), params, seed, (0, 40 * KIB)[seed // 3])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_graphs(seed):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    params, limit = (TINY, TWO, FOUR)[seed % 3], int(rng.choice([0, 24, 32, 40, 56])) * KIB
    _checked(branchy(seed, int(rng.integers(4, 16)), int(rng.integers(8, 49))), params, seed, limit, 40)


@pytest.mark.parametrize("params", sampled([TWO, TINY], 1), ids=["two engines", "one engine"])
def test_late_layers_have_windows_where_tensors_lay(params):
    """The ring of windows that the first layers leave holds one layer; loads run further ahead."""
    image = _checked(late_weights(2), params, 1, 60 * KIB, points=1)
    assert image is not None and image.meta.overlaid
    jobs = [job for job in image.meta.jobs if job.engine == 0]
    tensors = image.meta.segment_sizes[Segment.LV2]
    assert any(size and start < tensors for start, size in (job.window for job in jobs))
    late = [number for number, job in enumerate(jobs) if job.layer >= jobs[-1].layer - 3]
    home = (image.meta.segment_sizes[Segment.WINDOWS] - tensors) // params.engines
    ahead = [sum(job.window[1] for job in jobs[number - jobs[number].window_after + 1 : number + 1]) for number in late]
    assert max(ahead) > home, "loads are no further ahead than a ring would let them be"


@pytest.mark.parametrize("params", [TINY, TWO], ids=["one engine", "two engines"])
def test_windows_lie_side_by_side_where_all_fit(params):
    """Behind tensors and staging areas, and nothing but prologues writes where they say so."""
    image = _checked(branchy(2, 4, 12), params, 2, 0, points=4)
    assert image is not None
    low, size = image.meta.weights_only
    windows = sorted(job.window for job in image.meta.jobs if job.window[1])
    assert windows[0][0] == low >= image.meta.segment_sizes[Segment.LV2]
    assert sum(windows[-1]) == low + size == image.meta.segment_sizes[Segment.WINDOWS]
    assert all(start + length <= behind for (start, length), (behind, _) in itertools.pairwise(windows))
    again = [job.window_after for job in image.meta.jobs if job.engine == 0 and job.window[1]]
    assert set(again) == {sum(job.engine == 0 for job in image.meta.jobs)}, "the next inference waits for this one's"


def test_windows_that_share_bytes_promise_nothing():
    image = _checked(late_weights(2), TINY, 1, 60 * KIB, points=1)
    assert image is not None and image.meta.weights_only == (0, 0)
