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


def test_what_draws_pages_is_loaded_with_a_page_alone():
    """Each command, and each key that completes one, would wait for it."""
    program = "import sys, caesura.cli; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "caesura" in loaded and "bokeh" not in loaded
