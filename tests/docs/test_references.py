"""What pages refer to exists: files of the project, other pages, and the headings of those."""

import pytest

from tests.docs.pages import PAST, ROOT, anchors, links, pages, paths


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page):
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        path = ((ROOT / page).parent / target).resolve() if target else ROOT / page
        known = anchors(str(path.relative_to(ROOT))) if path.exists() and path.suffix == ".md" else {anchor}
        if not path.exists() or (anchor and anchor not in known):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in pages() if not page.startswith(PAST)])
def test_files_that_a_page_names_exist(page):
    assert sorted(path for path in paths(page) if not (ROOT / path).exists()) == []


def test_references_are_seen():
    assert sum(len(links(page)) for page in pages()) > 200
    assert sum(len(paths(page)) for page in pages()) > 200
    assert "how-good-it-is" in anchors("docs/order-search.md")
