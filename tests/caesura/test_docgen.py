import subprocess
import sys
from xml.etree import ElementTree

import pytest
from systemrdl import RDLCompiler

from caesura import docgen
from hw.contract.isa import FORMATS
from hw.contract.job import COMPLETION, JOB, Fault
from hw.contract.regs import ENGINE_BASE, ENGINE_REGS, ENGINE_STRIDE, GLOBAL_REGS, Access, EngineState


@pytest.mark.parametrize("name", docgen.PAGES)
def test_committed_page_is_what_the_tables_say(name):
    assert (docgen.DOCS / name).read_text() == docgen.PAGES[name](), "run python -m caesura.docgen"


def test_check_notices_a_stale_and_a_missing_page(tmp_path, capsys):
    assert docgen.main(["--docs", str(tmp_path)]) == 0
    assert docgen.main(["--check", "--docs", str(tmp_path)]) == 0
    (tmp_path / "isa.md").write_text("old")
    (tmp_path / "caesura.h").unlink()
    assert docgen.main(["--check", "--docs", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "isa.md" in error and "caesura.h" in error and "registers.md" not in error


def test_pages_name_everything():
    page = docgen.isa_page()
    for fields in FORMATS.values():
        assert all(f"`{f.name}`" in page for f in fields)
    assert all(f"`{reg.name}`" in docgen.registers_page() for reg in GLOBAL_REGS + ENGINE_REGS)
    assert all(f"`{m.name}`" in docgen.jobs_page() for m in JOB.members + COMPLETION.members)


def test_header_compiles_and_agrees(tmp_path):
    """The compiler comes from pip, as for the simulator."""
    source = tmp_path / "check.c"
    source.write_text(
        '#include <stddef.h>\n#include "caesura.h"\n'
        f'_Static_assert(offsetof(struct caesura_job, base3) == {JOB["base3"].offset}, "");\n'
        f'_Static_assert(offsetof(struct caesura_completion, end) == {COMPLETION["end"].offset}, "");\n'
        '_Static_assert(CAESURA_E_SEM(1, 2) == 0x2108u, "");\n'
        f'_Static_assert(CAESURA_FAULT_LIMIT == {Fault.LIMIT}, "");\n'
    )
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-std=c11",
        "-Wall",
        "-Werror",
        "-c",
        "-o",
        str(tmp_path / "check.o"),
    ]
    done = subprocess.run([*command, f"-I{docgen.DOCS}", str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", ["c -std=c11", "c++ -std=c++11", "c++ -std=c++20"])
def test_header_compiles_as_c_and_cpp(tmp_path, language):
    source = tmp_path / "check.txt"
    source.write_text('#include "caesura.h"\nint size(void) { return (int)sizeof(struct caesura_job); }\n')
    kind, standard = language.split()
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "cc" if kind == "c" else "c++",
        "-x",
        kind,
        standard,
        "-Wall",
        "-Wextra",
    ]
    command += ["-pedantic", "-Werror", f"-I{docgen.DOCS}", "-c", str(source), "-o", str(tmp_path / "check.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_register_map_in_svd_agrees():
    """Every register and bit, with address, access and reset, and nothing else; elements in the order of the schema."""
    (peripheral,) = ElementTree.parse(docgen.DOCS / "caesura.svd").getroot().iterfind("peripherals/peripheral")
    registers = peripheral.find("registers")
    cluster = registers.find("cluster")
    assert number(cluster, "addressOffset") == ENGINE_BASE and number(cluster, "dimIncrement") == ENGINE_STRIDE
    end = ENGINE_BASE + number(cluster, "dim") * ENGINE_STRIDE
    assert number(peripheral, "addressBlock/size") == end <= 1 << 16
    for parent, table in ((registers, GLOBAL_REGS), (cluster, ENGINE_REGS)):
        found = list(parent.iterfind("register"))
        assert [one.findtext("name").removesuffix("[%s]") for one in found] == [reg.name for reg in table]
        for one, reg in zip(found, table, strict=True):
            assert (number(one, "addressOffset"), number(one, "dim", 1)) == (reg.offset, reg.count)
            assert number(one, "dimIncrement", 4) == 4
            access = one.findtext("access")
            assert ("write" in access) == (reg.access != Access.RO) and ("read" in access) == (reg.access != Access.WO)
            assert (one.findtext("modifiedWriteValues") == "oneToClear") == (reg.access == Access.W1C)
            assert number(one, "resetValue", 0) == reg.reset and number(one, "resetMask", reg.mask) == reg.mask
            fields = [(f.findtext("name"), number(f, "bitOffset"), number(f, "bitWidth")) for f in one.iter("field")]
            assert fields == [(b.name, b.low, b.width) for b in reg.bits]
            order = [child.tag for child in one]
            assert order == [tag for tag in SVD_ORDER if tag in order]
    (states,) = cluster.iterfind("register/fields/field/enumeratedValues")
    assert {v.findtext("name"): number(v, "value") for v in states} == {s.name: s.value for s in EngineState}


#: Elements of a register, as the schema of CMSIS-SVD 1.3 orders them.
SVD_ORDER = (
    "dim", "dimIncrement", "name", "description", "addressOffset", "access", "resetValue", "resetMask",
    "modifiedWriteValues", "fields",
)  # fmt: skip


def number(element, path, default=None):
    text = element.findtext(path)
    return default if text is None else int(text, 0)


def test_register_map_in_systemrdl_agrees():
    """Read back by another reader of SystemRDL."""
    compiler = RDLCompiler()
    compiler.compile_file(str(docgen.DOCS / "caesura.rdl"))
    root = compiler.elaborate(top_def_name="caesura").top
    for base, prefix, table in ((0, "", GLOBAL_REGS), (ENGINE_BASE + 2 * ENGINE_STRIDE, "E[2].", ENGINE_REGS)):
        for reg in table:
            node = root.find_by_path(f"{prefix}{reg.name}" + (f"[{reg.count - 1}]" if reg.count > 1 else ""))
            assert node.absolute_address == base + reg.offset + 4 * (reg.count - 1)
            found = {(field.inst_name, field.low, field.width) for field in node.fields()}
            assert found == ({(b.name, b.low, b.width) for b in reg.bits} or {("value", 0, 32)})
            resets = [(field.get_property("reset") or 0) << field.low for field in node.fields()]
            assert sum(resets) == reg.reset
            readable, writable = reg.access != Access.WO, reg.access != Access.RO
            assert all((f.is_sw_readable, f.is_sw_writable) == (readable, writable) for f in node.fields())
