"""One word per thing: the words in names of modules and public classes are in the glossary, or plain English."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.test_imports import MODULES, ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
#: Words that mean in a name what they mean everywhere, in their shortest form: see :func:`forms`.
PLAIN = re.findall(
    r"\w+",
    """
accelerator access added addend addition address admit affine align alive allocator alone annealing any append arbiter
area assembly band bar base beam bench between bits blend board box branch build by bytes cache caesura call cell cells
chain change channel chart check choice choose client closed code collector column combinational combinations combine
command compile component const constant contained content context contract control copy cost cut cycle cycles data
datapath decode defer demo dependencies design died diff dimension disagreement division docgen duplicate dynamic
earliest edge element emission emit enable end equal error estimate exact excerpt expand export expressions failed
family feed fetch field file fill finish first fit flag flat float flop flow fold foreign form format found frontend
function functional fusesoc gather geometry grain greedy handle heap held html importer index inference info inner
instance interconnect interfaces interleave interrupt joined latency layout least length library life limits line link
lite log lookup loop lower made mask matrix measure measurements memory metrics mismatch missed mode module move
multiplied multipliers name narrow native need neighbours nest netlist next no normalise not now number object of on
open option options origin other out output ownership pad parameter partition past path patience pending periodic
permute picture piece pipeline pixel plain plot pointwise poisson pool prepare pressure priority private problem process
product progress quantise read real realign receiver recipe recovery reduce refuse registry release remedies repeat
report reset reshape resize robin role room round rule runtime sample scale schema scope search sequence serial serve
served serving sets settle setup short shortest side signature simulate simulators sink situation slave slice sliding
slope snapshot softmax space started status stop storage store strided structure sum surroundings synchronised table
taking terminal text timeout together tolerant tool toolchain top trace traffic transmitter transpose tree turns uncut
unpack unroll unsupported until urgent usage use value variation vector verify version view visible wait waveforms way
whatif why width work worst write written
""",
)


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the table under a heading, as cells."""
    text = re.sub(r'<a id="[\w-]+"></a>', "", text)  # what other pages link to
    lines = text.split(f"\n## {heading}\n")[1].split("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")][1:]


def words_of(name: str) -> list[str]:
    """The words of a class or module name, in lower case: ``Lv2Budget`` has ``lv2`` and ``budget``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_.]", " ", name)
    return [word.lower() for word in spaced.split()]


def forms(word: str) -> set[str]:
    """A word, and what it may be an inflection of."""
    found = {word}
    for ending in ("s", "es", "ed", "d", "er", "r", "or", "able", "ing", "ment", "ion", "ation"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > (3 if ending in ("es", "ion") else 2):  # not access, region
            found |= {stem, f"{stem}e"}
            if stem[-1] == stem[-2]:
                found.add(stem[:-1])  # split, splitting
    if word.endswith("ies"):
        found.add(f"{word[:-3]}y")
    return found | forms(word[:-1]) if word.endswith("s") and len(word) > 3 else found


def unknown(names: Iterable[str], known: set[str]) -> dict[str, str]:
    """Words that are not ``known`` in any form, with a name that has them."""
    return {word: name for name in names for word in words_of(name) if not forms(word) & known}


def public_names() -> set[str]:
    names = set()
    for module, path in MODULES.items():
        if module.split(".")[0] == "benchmarks":
            continue
        names |= {part for part in module.split(".") if not part.startswith("_")}
        tree = ast.parse(path.read_text())
        names |= {node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
    return names


TEXT = GLOSSARY.read_text()
TERMS = table(TEXT, "Terms")
SEVERAL = table(TEXT, "Words with several meanings")
SHORT = table(TEXT, "Abbreviations")
NAMES = public_names()
TERM_WORDS = {form for term, *_ in TERMS for word in words_of(term) for form in forms(word)}
SHORT_WORDS = {short.lower() for cell, _ in SHORT for short in cell.split(", ")}
KNOWN = TERM_WORDS | SHORT_WORDS | set(PLAIN)


def test_every_word_of_a_public_name_is_in_the_glossary_or_plain():
    assert len(NAMES) > 900
    assert unknown(NAMES, KNOWN) == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Lv2Budget", ""),
        ("PlacedRings", ""),
        ("FrobBuffer", "frob"),
        ("frob_plan", "frob"),
        ("RTLGizmo", "gizmo"),
    ],
)
def test_a_made_up_name_is_found(name, words):
    assert unknown([name], KNOWN).keys() == set(words.split())


def test_plain_words_are_sorted_used_and_not_in_the_glossary():
    assert sorted(set(PLAIN)) == PLAIN
    used = {form for name in NAMES for word in words_of(name) for form in forms(word)}
    assert set(PLAIN) - used == set()
    assert {word for word in PLAIN if forms(word) & (TERM_WORDS | SHORT_WORDS)} == set()


def test_every_term_has_one_definition():
    for cells in (TERMS, SEVERAL, SHORT):
        terms = [short for term, *_ in cells for short in term.lower().split(", ")]
        assert sorted(terms) == sorted(set(terms))
        assert [term for term, *_ in cells] == sorted((term for term, *_ in cells), key=str.lower)
    assert {term for term, *_ in TERMS} & {short for short, _ in SHORT} == set()


def test_every_meaning_is_a_sentence_that_names_its_term():
    for term, meaning, _ in TERMS:
        first = re.split(r"[\s,]", term)[0].lower()
        assert first[:6] in meaning.lower(), f"{term}: {meaning}"
        assert meaning.endswith(".") and len(meaning.split()) > 4, f"{term}: {meaning}"


def test_every_word_with_several_meanings_has_one_that_stays():
    terms = {term for term, *_ in TERMS}
    assert [word for word, _ in SEVERAL if word not in terms] == []


def test_every_file_that_the_glossary_names_exists():
    named = [where for *_, where in TERMS] + [cell for _, cell in SEVERAL]
    paths = [path for cell in named for path in re.findall(r"`([^`]+\.(?:py|md))`", cell)]
    assert len(paths) >= len(TERMS) + len(SEVERAL) - 1
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_term_is_used_in_a_public_name_or_a_page():
    used = {form for name in NAMES for word in words_of(name) for form in forms(word)}
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").glob("*.md") if page != GLOSSARY)]
    text = "\n".join(Path(page).read_text().lower() for page in pages)
    short = [one for cell, _ in SHORT for one in cell.split(", ")]
    for term in [term for term, *_ in TERMS] + short:
        assert set(words_of(term)) <= used or term.lower() in text, term
