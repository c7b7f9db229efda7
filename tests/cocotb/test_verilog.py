"""The generated Verilog under cocotb and Icarus, against AXI models that are not ours."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from compiler.compile import compile_model
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw.contract.params import preset
from sim.rtl.verilog import TOP, write_verilog

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.cocotb,
    pytest.mark.skipif(
        shutil.which("iverilog") is None,
        reason="Icarus Verilog is not installed (on Debian and Ubuntu: apt-get install iverilog)",
    ),
]


@pytest.fixture(scope="session")
def verilog(tmp_path_factory) -> Path:
    """The SoC ``tiny`` as Verilog."""
    return write_verilog(preset("tiny"), tmp_path_factory.mktemp("verilog"))[0]


def run_bench(verilog: Path, module: str, **environment: str) -> None:
    """Run the cocotb tests of ``module`` (a module of this folder) on the Verilog; any failure raises."""
    runner_tools = pytest.importorskip("cocotb_tools.runner", reason="cocotb is not installed")
    pytest.importorskip("cocotbext.axi", reason="cocotbext-axi is not installed")
    runner = runner_tools.get_runner("icarus")
    build = verilog.parent / "build"
    timescale = ("1ns", "1ps")
    runner.build(sources=[verilog], hdl_toplevel=TOP, build_dir=build, timescale=timescale)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    results = runner.test(
        test_module=f"tests.cocotb.{module}",
        hdl_toplevel=TOP,
        build_dir=build,
        test_dir=build,
        timescale=timescale,
        extra_env={"PYTHONPATH": path, **environment},
    )
    total, failed = runner_tools.get_results(results)
    assert total > 0 and failed == 0, f"{failed} of {total} cocotb tests failed; see the output above"


def test_registers_and_copies_with_and_without_stalls(verilog):
    run_bench(verilog, "bench_soc")


@pytest.mark.parametrize("stall", ["0.6", pytest.param("0.2", marks=pytest.mark.slow)])
def test_digits_with_random_stalls_on_all_channels(verilog, tmp_path, stall):
    image = compile_model(MODEL, preset("tiny"))
    image.save(tmp_path / "digits.cimg")
    sample = np.load(SAMPLES)["input"][:1]
    np.savez(tmp_path / "inputs.npz", **{image.meta.inputs[0].name: sample})
    files = {"IMAGE": "digits.cimg", "INPUTS": "inputs.npz", "OUTPUTS": "outputs.npz"}
    run_bench(verilog, "bench_digits", STALL=stall, **{name: str(tmp_path / file) for name, file in files.items()})
    with np.load(tmp_path / "outputs.npz") as outputs:
        np.testing.assert_array_equal(outputs["logits"], reference_logits(MODEL, sample))
        assert outputs["jobs"] == len(image.meta.jobs)
