"""Makes a page: headings, paragraphs, tables and plots one below the other, in one file that opens without a network.

Names on it are text: no markup, no formulas (Bokeh would typeset what stands between ``$$``, links and all), and
characters that would turn the direction of writing are shown escaped. So text gets on a page by :func:`heading`,
:func:`paragraph`, :func:`table`, :func:`label`, or :func:`sim.visible_text.visible` where Bokeh shows it as it is.
"""

from collections.abc import Sequence
from pathlib import Path

from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models.text import PlainText
from bokeh.models.ui import UIElement
from bokeh.models.widgets import Div
from bokeh.resources import INLINE

from caesura.views.tables import ColumnTable, escaped
from sim import visible

_STYLE = (
    "<style>.caesura{font:15px/1.5 system-ui,sans-serif;max-width:75em}.caesura table{border-collapse:collapse;"
    "font-size:14px}.caesura td,.caesura th{padding:.15em .7em;border-bottom:1px solid #ddd;text-align:right}"
    ".caesura td:first-child,.caesura th:first-child{text-align:left}.caesura th{border-bottom:2px solid #888}"
    ".caesura h1{font-size:22px}.caesura h2{font-size:18px;margin:.8em 0 .2em}</style>"
)


def heading(text: str, level: int = 2) -> Div:
    """Return a heading; 1 is the page's own."""
    return _html(f"<h{level}>{escaped(text)}</h{level}>")


def paragraph(text: str) -> Div:
    """Return plain text as a paragraph."""
    return _html(f"<p>{escaped(text)}</p>")


def table(shown: ColumnTable) -> Div:
    """Return a table that can be selected and copied."""
    return _html(shown.html())


def label(text: str) -> PlainText:
    """Return the title of a plot or an axis."""
    return PlainText(text=visible(text))


def write_page(path: Path, title: str, parts: Sequence[UIElement]) -> None:
    """Write the page; raises OSError."""
    whole = column(*parts, sizing_mode="stretch_width")
    path.write_text(file_html(whole, INLINE, visible(title)), encoding="utf-8")


def _html(text: str) -> Div:
    return Div(text=f'{_STYLE}<div class="caesura">{text}</div>', disable_math=True, sizing_mode="stretch_width")
