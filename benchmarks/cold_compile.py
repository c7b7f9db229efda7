"""Compiles a workload in a process of its own, with no cache, and tells what that cost."""

import multiprocessing
import resource
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from benchmarks.lab import ALONE
from benchmarks.workloads import workload
from compiler import CompileError, UnsupportedModel, compile_model
from hw.contract.params import SocParams
from hw.image import Image

LIMIT = 300  #: CPU seconds after which a compilation is ended


@dataclass(frozen=True)
class ColdCompilation:
    """What became of a compilation. ``raw``: the image, if there is one; ``refused``: why not, if there is none.

    ``seconds`` are CPU seconds of the process from reading the file on, ``megabytes`` its most memory.
    """

    raw: bytes
    seconds: float
    megabytes: int
    refused: str = ""

    def image(self) -> Image:
        """Return the image. Raises :class:`CompileError` with the reason if the model was refused."""
        if self.refused:
            raise CompileError(self.refused)
        return Image.from_bytes(self.raw)


def compile_cold(name: str, params: SocParams, limit: int = LIMIT) -> ColdCompilation:
    """Compile the workload ``name`` for all engines of ``params``, without fallback, in ``limit`` CPU seconds at most.

    The model is generated here if it has to be. What the process took when it was ended at its limit is the limit.
    """
    workload(name)
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawning) as pool:
        try:
            return pool.submit(_compiled, name, params, limit).result()
        except BrokenProcessPool:
            return ColdCompilation(b"", limit, 0, f"{name}: compiling it was ended after {limit} CPU seconds")


def refusal(error: UnsupportedModel) -> str:
    """Return in one line which operators an error is about, how many of each, and the reason for the first."""
    counts = Counter(node.type for node in error.nodes)
    first = {node.type: node.reason for node in reversed(error.nodes)}
    return f"refused: {'; '.join(f'{count} {kind} ({first[kind]})' for kind, count in counts.items())}"


def _compiled(name: str, params: SocParams, limit: int) -> ColdCompilation:
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(began) + limit, int(began) + limit))
    raw, refused = b"", ""
    try:
        raw = compile_model(
            workload(name), params, engines=params.engines, options=ALONE, jobs=1, cache=False
        ).to_bytes()  # fmt: skip
    except UnsupportedModel as error:
        refused = refusal(error)
    except CompileError as error:
        refused = str(error)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return ColdCompilation(raw, time.process_time() - began, most, refused)
