"""Shows names from models, images and files as text that people can look at.

Whoever made a file chose its names. Characters that move a cursor, ring, or turn the direction of writing are shown as
what they are: ``\\x1b``.
"""


def visible(text: str, *, lines: bool = False) -> str:
    """Return ``text`` with all characters escaped that do not show themselves; with ``lines`` the ends of lines
    stay."""
    return "".join(char if char.isprintable() or (lines and char == "\n") else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
