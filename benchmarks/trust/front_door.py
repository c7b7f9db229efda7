"""Hostile files through the front door: each is taken or refused in one clear message, within seconds and 1 GiB."""

import json
import random
import select
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

import caesura
from benchmarks.trust.differential import Mismatch
from benchmarks.trust.hostile_files import (
    hostile_image,
    hostile_inputs,
    hostile_machine,
    hostile_model,
    small_model,
)
from examples.digits import MODEL, SAMPLES
from hw.contract.params import preset

PATIENCE = 60.0  #: seconds that one file may take: the process ends itself after 10 of processor time
_START = 120.0
_KINDS = ("onnx", "onnx", "cimg", "cimg", "npz", "npz", "toml")


@cache
def _image() -> bytes:
    return caesura.compile(MODEL, preset("tiny")).to_bytes()


class FrontDoorCampaign:
    """One process takes the files, and a new one where it hangs or dies."""

    def __init__(self, backend: str) -> None:
        del backend
        self.reached: Counter[str] = Counter()
        self._folder = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[str] | None = None

    @property
    def process_id(self) -> int | None:
        """Of the process that takes files now, if there is one."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """End the process."""
        self._stop()
        self._folder.cleanup()

    def round(self, seed: int) -> str:
        """One file. Raises ``Mismatch`` for a traceback, a process that died, or one that takes too long."""
        rng = random.Random(seed)
        kind = rng.choice(_KINDS)
        path = Path(self._folder.name) / f"{seed}.{kind}"
        path.write_bytes(self._content(rng, kind))
        answer = self._ask(kind, path)
        path.unlink()
        if answer.startswith("TRACEBACK"):
            raise Mismatch(f"{kind}: {answer.strip().splitlines()[-1]}\n{answer}")
        return f"{kind} {answer.split(':')[0]}"

    def _content(self, rng: random.Random, kind: str) -> bytes:
        if kind == "onnx":
            return hostile_model(rng, MODEL.read_bytes() if rng.random() < 0.3 else small_model(rng))
        if kind == "cimg":
            return hostile_image(rng, _image())
        return hostile_inputs(rng, SAMPLES.read_bytes()) if kind == "npz" else hostile_machine(rng)

    def _ask(self, kind: str, path: Path) -> str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.trust.front_door_worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            if self._line(_START) != "ready\n":
                raise Mismatch("the process that takes files in does not start")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([kind, str(path)]) + "\n")
            self._process.stdin.flush()
            line = self._line(PATIENCE)
        except BrokenPipeError:  # it died after the file before
            line = ""
        if not line:
            self._stop()
            raise Mismatch(f"{kind}: the process died, or took too long")
        return json.loads(line)

    def _line(self, seconds: float) -> str:
        assert self._process is not None and self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return self._process.stdout.readline() if ready else ""

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self._process = None
