"""The edges' table is its own: it has encodings from the contract, and no rule."""

import ast
from pathlib import Path

import pytest

from benchmarks.trust import edges
from benchmarks.trust.edges import EdgeCampaign, WrongEnding, first
from benchmarks.trust.edges_case import WELL, EdgeCase, executor
from hw.contract.job import Fault
from sim.backends import DEFAULT_BACKEND

FOLDER = Path(edges.__file__).parent
#: What the modules may take from the rest of the project: opcodes and layouts, numbers of faults, parameters.
ENCODINGS = {
    "hw.contract.isa": {"Op", "FORMATS"},
    "hw.contract.job": {"Fault", "FaultUnit", "JOB_MAGIC", "SEMAPHORES"},
    "hw.contract.params": {"SocParams"},
    "benchmarks.trust.words": {"raw_word", "with_bits"},
}


@pytest.mark.parametrize("name", ["edges_case", "edges_copies", "edges_compute", "edges_jobs"])
def test_the_rules_are_written_by_hand(name):
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.split(".")[0] in ("hw", "sim", "sw")]
        if not isinstance(node, ast.ImportFrom) or node.module.startswith("benchmarks.trust.edges_"):
            continue
        if node.module.split(".")[0] in ("hw", "sim", "sw", "benchmarks"):
            assert {alias.name for alias in node.names} <= ENCODINGS.get(node.module, set()), node.module


def test_words_know_layouts_only():
    """``raw_word`` takes any value of any field."""
    tree = ast.parse((FOLDER / "words.py").read_text())
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "raw_word")
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert not {name for name in names if "SEGMENTS" in name or name == "Insn"}


@pytest.mark.parametrize("params", [edges.PARAMS, edges.SECOND], ids=lambda p: p.name)
def test_cases_have_names_of_their_own(params):
    names = [(case.kind, case.what) for case in edges.cases(params)]
    assert len(names) == len(set(names)) > 4000


@pytest.fixture(scope="module")
def campaign():
    made = first(DEFAULT_BACKEND)
    yield made
    made.close()


def test_a_wrong_ending_is_told_and_the_engine_goes_on(campaign: EdgeCampaign):
    case = next(case for case in edges.cases(edges.PARAMS) if case.ending == WELL and case.kind == "segments")
    wrong = EdgeCase(case.kind, case.what, case.body, executor(Fault.ILLEGAL))
    with pytest.raises(WrongEnding, match="must end with ILLEGAL of EXECUTOR at PC 0, 0x0, not with NONE"):
        campaign.run(wrong)
    campaign.run(case)


def test_what_belongs_to_no_case_may_not_change(campaign: EdgeCampaign, monkeypatch):
    ran = []

    def spoil(case: EdgeCase) -> None:
        ran.append(case)
        campaign._soc.bus.write_mem(0x1A123, b"\x5a", charge=False)

    monkeypatch.setattr(campaign, "run", spoil)
    with pytest.raises(WrongEnding, match="DRAM at 0x1a123 belongs to no case, and has changed"):
        campaign.round(1)
    assert len(ran) > 4000
