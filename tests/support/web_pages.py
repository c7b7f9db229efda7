"""What an HTML page would load from elsewhere."""

from html.parser import HTMLParser


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {value}" for name, value in attrs if name in ("src", "href", "srcset", "data") and value]


def loads(page: str) -> list[str]:
    """Files that the elements of ``page`` name; what scripts contain as text does not count."""
    parser = _Loads()
    parser.feed(page)
    return parser.found
