"""Longest paths from a delay file."""

from caesura.fpga.paths import CellDelays, SourceLines, worst_paths

SDF = r"""
(DELAYFILE
  (CELL
    (CELLTYPE "top")
    (INSTANCE )
    (DELAY
      (ABSOLUTE
        (INTERCONNECT first/Q short/A (0:0:100) (0:0:100))
        (INTERCONNECT first/Q long\$CCU2_COMB0/A (0:0:300) (0:0:300))
        (INTERCONNECT short/F last/DI (0:0:50) (0:0:50))
        (INTERCONNECT long\$CCU2_COMB0/F last/M (0:0:500) (0:0:500))
        (INTERCONNECT loose/F last/CE (0:0:9000) (0:0:9000))
  (CELL
    (INSTANCE first)
        (IOPATH CLK Q (0:0:309) (0:0:309))
      (SETUPHOLD (posedge M) (posedge CLK) (0:0:0) (1:2:3))
  (CELL
    (INSTANCE short)
        (IOPATH A F (0:0:141) (0:0:141))
  (CELL
    (INSTANCE long\$CCU2_COMB0)
        (IOPATH A F (0:0:450) (0:0:450))
  (CELL
    (INSTANCE last)
        (IOPATH CLK Q (0:0:309) (0:0:309))
      (SETUPHOLD (posedge DI) (posedge CLK) (0:0:0) (1:2:3))
      (SETUPHOLD (posedge M) (posedge CLK) (10:11:12) (1:2:3))
      (SETUPHOLD (posedge CE) (posedge CLK) (0:0:0) (1:2:3))
"""
CELLS = {
    "first": {"attributes": {"src": "share/cells.v:1|hw/a.py:1"}},
    "long": {"attributes": {"src": "hw/b.py:2"}},
    "last": {"attributes": {"src": "hw/c.py:3"}},
}


def test_the_longest_way_is_found(tmp_path):
    (tmp_path / "delays.sdf").write_text(SDF)
    paths = worst_paths(CellDelays.read(tmp_path / "delays.sdf"), SourceLines({"cells": CELLS, "netnames": {}}))
    assert len(paths) == 1  # both ways are between the same two lines
    (path,) = paths
    assert path["delay"] == round((309 + 300 + 450 + 500 + 12) / 1000, 2)
    assert (path["start"], path["end"], path["through"], path["levels"]) == ("hw/a.py:1", "hw/c.py:3", ["hw/b.py:2"], 1)


def test_a_cell_without_a_line_is_told_by_the_signal_that_it_is_named_after():
    nets = {"machine.sum": {"attributes": {"src": "hw/d.py:4"}}}
    lines = SourceLines({"cells": {}, "netnames": nets})
    assert lines.of("machine.sum_LUT4_Z_3_B_CCU2C_S0$CCU2_COMB1") == "hw/d.py:4"
    assert lines.of("\\elsewhere_LUT4_Z") is None
