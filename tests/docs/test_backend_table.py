"""docs/simulation.md lists the backends as ``sim/backends.py`` has them, and no other page lists them again."""

import re

from sim.backends import BACKENDS, BACKENDS_HELP, DEFAULT_BACKEND
from tests.docs.pages import pages, section, table, text_of

PAGE = "docs/simulation.md"
ROWS = table(section(PAGE, "## Backends"))


def test_the_table_has_every_backend_in_the_words_of_the_command_line():
    told = [(name.strip("`"), line) for name, line, _ in ROWS]
    assert told == re.findall(r"(\w+) \(([^)]*)\)", BACKENDS_HELP)
    assert [name for name, _ in told] == list(BACKENDS)


def test_the_table_names_the_default():
    assert [name.strip("`") for name, _, use in ROWS if "by default" in use] == [DEFAULT_BACKEND]


def test_it_stands_once():
    row = re.compile(rf"^\| `(?:{'|'.join(BACKENDS)})` \|", re.MULTILINE)
    assert [page for page in pages() if len(row.findall(text_of(page))) > 1] == [PAGE]
