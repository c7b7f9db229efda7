"""Writes tables on pages, where text is never markup and long text is cut."""

import html

from sim import visible


def escaped(text: str) -> str:
    """Return ``text`` as HTML shows it."""
    return html.escape(visible(text))


def shortened(name: str, most: int = 44) -> str:
    """Return a name, with its middle left out if it is longer than ``most``."""
    return name if len(name) <= most else f"{name[: most // 3]}…{name[-(most - most // 3 - 1) :]}"
