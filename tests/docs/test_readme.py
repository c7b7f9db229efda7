"""The README is true about figures: it names those that miss what they must reach, and no others."""

from benchmarks.ledger.ledger import Ledger
from benchmarks.ledger.pages import named_figures
from tests.docs.pages import section


def test_the_figures_that_miss_are_named():
    missing = {key for key, row in Ledger.read().rows.items() if not row.ok}
    assert set(named_figures(section("README.md", "## Status"))) & missing == missing
    (told,) = [line for line in section("README.md", "## Status").split("\n- ") if line.startswith("**Some figures.**")]
    assert set(named_figures(told)) == missing
