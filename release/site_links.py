"""Makes pages of ``docs/`` pages of a site (a hook of MkDocs, see ``mkdocs.yml``): links to what lies elsewhere in the
repository lead to where that is published, ``repo_url``, and are plain text where nothing says it."""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return the text of a page without links that leave ``docs/``."""
    folder, base = posixpath.join("docs", posixpath.dirname(page.file.src_uri)), config.get("repo_url")

    def inside(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        if target.startswith("docs/") or target == "docs":
            return match[0]
        return f"[{match[1]}]({base.rstrip('/')}/blob/main/{target}{match[3] or ''})" if base else match[1]

    return _LINK.sub(inside, markdown)
