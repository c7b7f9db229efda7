"""The README is true about figures: it names those that miss what they must reach, and no others. It compares with six
projects, and links terms where they first stand."""

import re

from benchmarks.ledger.ledger import Ledger
from benchmarks.ledger.pages import named_figures
from tests.docs.pages import ROOT, section, table, text_of


def test_the_figures_that_miss_are_named():
    missing = {key for key, row in Ledger.read().rows.items() if not row.ok}
    assert set(named_figures(section("README.md", "## Status"))) & missing == missing
    (told,) = [line for line in section("README.md", "## Status").split("\n- ") if line.startswith("**Some figures.**")]
    assert set(named_figures(told)) == missing


def test_peers_have_a_source_and_a_command_of_ours():
    rows = table(section("README.md", "## What else there is"))
    assert len(rows) == 6
    for name, what, found, ours in rows:
        assert re.match(r"\[.+\]\(https://", name) and what
        assert "](https://" in found or re.search(r"\(.*(calculated|measured|its paper)", found), name
        assert re.search(r"`caesura [a-z]+ .*`", ours), name


def test_terms_are_linked_where_they_first_stand():
    text = re.sub(r"^#.*$|^ {4}.*$|`[^`\n]*`", "", text_of("README.md"), flags=re.MULTILINE)
    terms = re.findall(r"\[([^]]+)\]\(docs/glossary.md#[\w-]+\)", text)
    assert len(terms) == len(set(terms)) >= 8
    early = [term for term in terms if re.search(rf"\b{term}\b", text[: text.index(f"[{term}](docs/glossary")])]
    assert early == []
    named = {
        term.strip() for term in re.findall(r"<a id=\"[\w-]+\"></a>([^|]+)", (ROOT / "docs/glossary.md").read_text())
    }
    assert {term.lower().removesuffix("s") for term in terms} <= {term.lower() for term in named}
