"""Text on pages is text, and has room."""

import html

from sim.visible_text import visible


def escaped(text: str) -> str:
    """HTML shows the result as ``text``."""
    return html.escape(visible(text))


def shortened(name: str, most: int = 44) -> str:
    """A name that is longer than ``most`` has its middle left out."""
    return name if len(name) <= most else f"{name[: most // 3]}…{name[-(most - most // 3 - 1) :]}"
