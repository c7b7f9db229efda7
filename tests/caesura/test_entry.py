"""The ways into the command line."""

import subprocess
import sys
from importlib.metadata import version

from tests.system.command import caesura_command


def test_version():
    code, out, _ = caesura_command("--version")
    assert (code, out.strip()) == (0, f"caesura {version('caesura-npu')}")


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "caesura", "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, f"caesura {version('caesura-npu')}")
