"""What docs/tutorial.md has its reader do is done here, in a checkout of its own and in order: files are written, the
difference is applied, commands print what is shown."""

import subprocess

import pytest

from benchmarks.everyday import checkout
from tests.support.documented import ROOT, check_documented
from tests.system.test_documented_commands import BLOCK, commands, ran

PAGE = ROOT / "docs" / "tutorial.md"


def steps():
    return BLOCK.findall(PAGE.read_text())


def git(folder, *arguments, **more):
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, **more)


@pytest.fixture
def copied():
    """The present sources as a checkout whose last commit they are."""
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    with checkout() as folder:
        yield folder


def test_the_steps_are_there():
    languages = [language for language, _ in steps()]
    assert languages.count("console") >= 6 and languages[-1] == "console"
    assert [languages.count(one) for one in ("toml", "diff", "python")] == [1, 1, 1]


def test_the_difference_applies_to_the_present_rtl():
    (difference,) = [text for language, text in steps() if language == "diff"]
    git(ROOT, "apply", "--check", "-", input=difference)


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(copied):
    for language, text in steps():
        if language in ("toml", "python"):  # the first line names the file
            (copied / text.splitlines()[0].removeprefix("# ")).write_text(text)
        elif language == "diff":
            git(copied, "apply", "-", input=text)
        else:
            for command in commands(text):
                check_documented(command.output, ran(command.line, copied, copied))
    git(copied, "checkout", "--quiet", "hw")  # "see it fail"
    with pytest.raises(AssertionError, match=r"\[1, 0, 0\] == \[0, 1, 0\]"):
        ran(commands(steps()[-1][1])[0].line, copied, copied)
