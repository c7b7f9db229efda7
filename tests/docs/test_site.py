"""The documentation as a site: every page is in its navigation, and no link or anchor leads nowhere."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
ROOT = Path(__file__).parents[2]


def built(folder, *options):
    """Build the site; returns the exit code and what was told."""
    command = [sys.executable, "-m", "mkdocs", "build", "-d", str(folder), *options]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.returncode, found.stdout + found.stderr


def test_site_is_whole(tmp_path):
    code, told = built(tmp_path / "site")
    assert code == 0, told
    page = (tmp_path / "site" / "api" / "index.html").read_text()
    assert "caesura.api.compile" in page and "caesura.inference_session.InferenceSession" in page
    assert (
        "fonts.googleapis.com" not in page and "](../" not in (tmp_path / "site" / "memory" / "index.html").read_text()
    )


def test_a_link_that_leads_nowhere_is_an_error(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[gone](gone.md), [kept](../compiler/ir.py)\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"site_name: small\nstrict: true\nhooks: [{ROOT / 'release' / 'site_links.py'}]\nnav: [index.md]\n"
    )
    code, told = built(tmp_path / "site", "-f", str(tmp_path / "mkdocs.yml"))
    assert code and "gone.md" in told and "ir.py" not in told
