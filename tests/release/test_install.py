"""How far pip is, told while it works."""

import sys

from release.install import Watched

#: A pip that finds two packages, unpacks them one after the other, and is silent otherwise.
PIP = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
print("Collecting numpy==2.0", flush=True); time.sleep(0.3)
print("  Downloading https://x/packages/onnx_a-1.2-cp311-none.whl (2 kB)", flush=True); time.sleep(0.2)
print("Installing collected packages: numpy, onnx", flush=True); time.sleep(0.3)
(folder / "numpy-2.0.dist-info").mkdir(); time.sleep(0.3)
sys.exit(int(sys.argv[2]))
"""


def watched(folder, code=0):
    (folder / "pip-23.dist-info").mkdir()
    told = []
    one = Watched(folder, told.append, every=0.05)
    return one.run([sys.executable, "-c", PIP, str(folder), str(code)]), told, one.output


def test_every_step_is_told(tmp_path):
    code, told, _ = watched(tmp_path)
    assert code == 0
    for line in ("finding numpy", "downloading onnx_a", "unpacking (0 of 2)", "unpacking (1 of 2)"):
        assert any(line in one for one in told), (line, told)


def test_a_failure_keeps_what_pip_said(tmp_path):
    code, _, output = watched(tmp_path, code=3)
    assert code == 3
    assert output[0] == "Collecting numpy==2.0\n"
