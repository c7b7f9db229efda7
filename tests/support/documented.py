"""Example output in the documentation, to compare with what the commands print now."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(?:text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ELISION = re.compile(r"^ *\.\.\. .*more \.\.\.$")
_SECONDS = re.compile(r"\b[\d.]+ s$")


def documented(page: str, beginning: str) -> list[str]:
    """Lines of the fenced block of ``page`` that begins with ``beginning``; there must be one."""
    blocks = [match[1] for match in _BLOCK.finditer((ROOT / page).read_text())]
    (found,) = [block for block in blocks if block.startswith(beginning)]
    return found.splitlines()


def documented_code(page: str, name: str) -> str:
    """The fenced block of Python in ``page`` that names ``name``; there must be one."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if name in block]
    return str(found)


def check_documented(block: list[str], output: str) -> None:
    """Fail unless ``output`` holds the lines of ``block`` one after another; where ``block`` says ``... 20 more ...``
    anything may stand. Seconds at the end of a line do not count: they are the computer's."""
    printed, at = [_comparable(line) for line in output.splitlines()], 0
    for part in _parts(block):
        starts = range(at, len(printed) - len(part) + 1)
        start = next((i for i in starts if printed[i : i + len(part)] == part), None)
        if start is None:
            missing = [line for line in part if line not in printed[at:]]
            told = "\n".join(missing) or "its lines, one after another"
            raise AssertionError(f"the documentation shows\n{told}\nbut printed was\n{output}")
        at = start + len(part)


def _parts(block: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in block:
        if _ELISION.match(line):
            parts.append([])
        else:
            parts[-1].append(_comparable(line))
    return parts


def _comparable(line: str) -> str:
    return _SECONDS.sub("? s", line.rstrip())
