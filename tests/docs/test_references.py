"""What pages refer to exists: files of the project, other pages, and the headings of those."""

import importlib

import pytest

from tests.docs.pages import FOLDERS, PAST, ROOT, anchors, links, names, pages, paths, written

PRESENT = [page for page in pages() if not page.startswith(PAST)]


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


@pytest.mark.parametrize("page", PRESENT)
def test_files_that_a_page_names_exist(page):
    assert sorted(path for path in paths(page) if not (ROOT / path).exists()) == []


def leads_somewhere(name: str) -> bool:
    """Whether a dotted name is that of a module, or of something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as missing:
            if count == len(parts) and f"{missing.name}".split(".")[0] not in FOLDERS:
                return True  # it is there; a package of others that it needs, such as PyTorch, is not
            continue
        return all(hasattr(found, part) and (found := getattr(found, part)) is not None for part in parts[count:])
    return False


@pytest.mark.parametrize("page", PRESENT)
def test_names_that_a_page_gives_exist(page):
    assert sorted(name for name in names(page) if not leads_somewhere(name)) == []


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("hw.contract.bus.HostCosts", True), ("benchmarks.ledger.pages", True), ("caesura.views.line", True),
        ("examples.words.train", True), ("examples.words.learn", False),
        ("sim.bus.Bus", False), ("caesura.timeline", False), ("sw.driver.Device.settled", False),
    ],
)  # fmt: skip
def test_names_that_are_gone_are_seen(name, there):
    assert leads_somewhere(name) is there


def test_files_that_a_reader_writes_are_known():
    assert written("docs/tutorial.md") == {"mine.toml", "tests/hw/control/test_done_register.py"}
    assert "hw/control/unit_queue.py" in paths("docs/tutorial.md")


def test_references_are_seen():
    assert sum(len(names(page)) for page in pages()) > 50
    assert sum(len(links(page)) for page in pages()) > 200
    assert sum(len(paths(page)) for page in pages()) > 200
    assert "how-good-it-is" in anchors("docs/order-search.md")
