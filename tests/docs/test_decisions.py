"""The index of decisions lists each page with the status that the page states."""

import re

from tests.docs.pages import ROOT, table, text_of

FOLDER = ROOT / "docs" / "decisions"


def test_the_index_has_every_decision_and_its_status():
    listed = {
        re.sub(r".*\((.*)\)", r"\1", number): status for number, _, status in table(text_of("docs/decisions/README.md"))
    }
    told = {}
    for page in sorted(FOLDER.glob("0*.md")):
        title, _, status = page.read_text().splitlines()[:3]
        assert title.startswith(f"# {page.name[:4]} · "), page
        told[page.name] = status.removeprefix("**Status.** ").rstrip(".")
    assert listed == {name: status[0].lower() + status[1:] for name, status in told.items()}
    assert len(listed) > 20 and any(status.startswith("superseded by") for status in listed.values())
