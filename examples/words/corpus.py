"""The text: the help topics of the Python that runs this, each paragraph once, in ASCII.

Topics repeat each other's paragraphs. Without repeats, no paragraph that is held out has been trained on.
"""

import re
from itertools import pairwise
from pydoc_data.topics import topics

HELD_OUT = 0.05  #: of the characters, at the end
UNDERLINE = re.compile(r"\n([=*~-])\1+$", re.MULTILINE)  #: of a heading
WRAPPED = 60  #: characters from which a line is taken to go on in the next one
_ASCII = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "--", "…": "...", "°": " degrees", "ß": "ss"}
)


def text() -> str:
    """All topics in the order of their names, a blank line between paragraphs, none of them wrapped."""
    paragraphs: dict[str, None] = {}
    for name in sorted(topics):
        plain = UNDERLINE.sub("", topics[name]).translate(_ASCII).encode("ascii", "ignore").decode()
        for paragraph in re.split(r"\n\s*\n", plain):
            paragraphs.setdefault(_unwrapped(paragraph.strip("\n")))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph.strip()) + "\n"


def split(whole: str) -> tuple[str, str]:
    """What is trained on, and what is held out: the last paragraphs."""
    cut = whole.rindex("\n\n", 0, int(len(whole) * (1 - HELD_OUT))) + 2
    return whole[:cut], whole[cut:]


def _unwrapped(paragraph: str) -> str:
    """Prose as one line; shorter lines, such as code, stay."""
    lines = paragraph.split("\n")
    result = lines[0]
    for before, line in pairwise(lines):
        result += f" {line.strip()}" if len(before) >= WRAPPED else f"\n{line}"
    return result
