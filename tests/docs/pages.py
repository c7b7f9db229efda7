"""The pages that people read, and what they refer to."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "caesura", "compiler", "docs", "examples", "hw", "sim", "sw", "tests")
#: Pages that speak of the past: what they name may be gone.
PAST = ("CHANGELOG.md", "docs/decisions/0", "docs/notes/")

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*[\w/]")
_QUOTED = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:\.\w+)+(?=(?:\(.*\))?$)")
_BLOCK = re.compile(r"^```.*?^```$|(?:^ {4}.*\n)+", re.MULTILINE | re.DOTALL)
_WRITTEN = re.compile(r"^```\w+\n# (\S+\.\w+)$", re.MULTILINE)
_IMPORT = re.compile(r"^\s*from ([\w.]+) import ([\w, ]+)", re.MULTILINE)
_RUN = re.compile(r"python -m ([\w.]+)")


def pages() -> list[str]:
    """Every page, from the folder of the project."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in found)


@cache
def text_of(page: str) -> str:
    """A page without blocks of code and output."""
    return _FENCED.sub("", (ROOT / page).read_text())


def links(page: str) -> list[str]:
    """Where a page's links into the project lead."""
    return [link for link in _LINK.findall(text_of(page)) if not re.match(r"[a-z]+:", link)]


def paths(page: str) -> set[str]:
    """Files and folders of the project that a page names, in code style or in a block of code or output."""
    quoted = {one for one in _QUOTED.findall(text_of(page)) if _PATH.fullmatch(one)}
    blocks = (re.findall(rf"(?<![\w/.-]){_PATH.pattern}", block) for block in _blocks(page))
    return quoted.union(*blocks) - written(page)


def written(page: str) -> set[str]:
    """Files that a page has its reader write: the first line of a block of code names them."""
    return set(_WRITTEN.findall((ROOT / page).read_text()))


def names(page: str) -> set[str]:
    """What a page calls by its dotted name: modules of the project, and what is in them."""
    quoted = (_NAME.match(one) for one in _QUOTED.findall(text_of(page)))
    found = {
        match[0]
        for match in quoted
        if match and match[0].rpartition(".")[2] not in ("h", "json", "py", "rdl", "svd", "toml")
    }
    for block in _blocks(page):
        found |= {f"{module}.{name.strip()}" for module, told in _IMPORT.findall(block) for name in told.split(",")}
        found |= set(_RUN.findall(block))
    return {name for name in found if name.split(".")[0] in FOLDERS}


def _blocks(page: str) -> list[str]:
    """Blocks of code and of output."""
    return _BLOCK.findall((ROOT / page).read_text())


def anchors(page: str) -> set[str]:
    """The headings of a page, as links name them, and what it marks otherwise."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    marked = set(re.findall(r'<a id="([\w-]+)"></a>', text_of(page)))
    return marked | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def section(page: str, heading: str) -> str:
    """What stands in a page under ``heading``, up to the next heading of that level or above."""
    level = heading.index(" ")
    _, _, rest = (ROOT / page).read_text().partition(f"\n{heading}\n")
    assert rest, f"{page} has no heading {heading!r}"
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table(text: str) -> list[list[str]]:
    """The cells of the first table in ``text``, row by row, without its header."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
