"""What docs/tutorial.md has its reader do is done here, in a checkout of its own and in order: files are written, the
difference is applied, commands print what is shown."""

import subprocess

import pytest

from tests.support.documented import ROOT, check_documented
from tests.system.test_documented_commands import BLOCK, commands, ran

PAGE = ROOT / "docs" / "tutorial.md"
GIT = ("git", "-c", "user.name=reader", "-c", "user.email=reader@localhost", "-c", "commit.gpgsign=false")


def steps():
    return BLOCK.findall(PAGE.read_text())


def git(folder, *arguments, **more):
    return subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True, **more).stdout


@pytest.fixture
def checkout(tmp_path):
    """The present sources as a checkout whose last commit they are."""
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in git(ROOT, "ls-files").splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "start")
    return folder


def test_the_steps_are_there():
    languages = [language for language, _ in steps()]
    assert languages.count("console") >= 6 and languages[-1] == "console"
    assert [languages.count(one) for one in ("toml", "diff", "python")] == [1, 1, 1]


def test_the_difference_applies_to_the_present_rtl():
    (difference,) = [text for language, text in steps() if language == "diff"]
    git(ROOT, "apply", "--check", "-", input=difference)


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(checkout):
    for language, text in steps():
        if language in ("toml", "python"):  # the first line names the file
            (checkout / text.splitlines()[0].removeprefix("# ")).write_text(text)
        elif language == "diff":
            git(checkout, "apply", "-", input=text)
        else:
            for command in commands(text):
                check_documented(command.output, ran(command.line, checkout, checkout))
    git(checkout, "checkout", "--quiet", "hw")  # "see it fail"
    with pytest.raises(AssertionError, match=r"\[1, 0, 0\] == \[0, 1, 0\]"):
        ran(commands(steps()[-1][1])[0].line, checkout, checkout)
