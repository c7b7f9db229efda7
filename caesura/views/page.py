"""Makes a page: headings, paragraphs, tables and plots one below the other, in one file that opens without a network.

Names on it are text: no markup, no formulas (Bokeh would typeset what stands between ``$$``, links and all), and
characters that would turn the direction of writing are shown escaped. So text gets on a page by :func:`heading`,
:func:`paragraph`, :func:`table`, :func:`label`, or :func:`sim.visible_text.visible` where Bokeh shows it as it is.
"""

from collections.abc import Sequence
from pathlib import Path

from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import InlineStyleSheet
from bokeh.models.text import PlainText
from bokeh.models.ui import UIElement
from bokeh.models.widgets import Div
from bokeh.resources import INLINE

from caesura.views.tables import ColumnTable, escaped
from sim import visible

#: Colours of a page: of text, of paper, and of lines; plots and widgets stay on light paper.
LIGHT = {"ink": "#1f2328", "paper": "#ffffff", "line": "#d0d7de"}
DARK = {"ink": "#e6edf3", "paper": "#15191f", "line": "#3d444d"}

_COLOURS = ";".join(f"--{name}:{value}" for name, value in LIGHT.items())
_DARK_COLOURS = ";".join(f"--{name}:{value}" for name, value in DARK.items())
#: Of the page: the size of the screen is the width, whatever that is, and colours are those of the reader's system.
_HEAD = (
    '{% block postamble %}<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><style>:root{' + _COLOURS + "}"
    "@media (prefers-color-scheme:dark){:root{" + _DARK_COLOURS + "}}@media print{:root{" + _COLOURS + "}}"
    "body{background:var(--paper);color:var(--ink);padding:12px}</style>{% endblock %}"
)
_STYLE = (
    "<style>.caesura{font:15px/1.5 system-ui,sans-serif;max-width:75em;overflow-x:auto;color:var(--ink)}"
    ".caesura table{border-collapse:collapse;font-size:14px}"
    ".caesura td,.caesura th{padding:.15em .7em;border-bottom:1px solid var(--line);text-align:right}"
    ".caesura td:first-child,.caesura th:first-child{text-align:left}.caesura th{border-bottom-width:2px}"
    ".caesura h1{font-size:22px}.caesura h2{font-size:18px;margin:.8em 0 .2em}"
    "@media print{.caesura{overflow-x:visible}.caesura table{font-size:10px}"
    ".caesura td,.caesura th{padding:.15em .4em;overflow-wrap:anywhere}}</style>"
)
#: Of text: no wider than the screen, so a table that is scrolls by itself.
_TEXT = ":host{min-width:0;max-width:100%}.bk-clearfix{display:block!important}"
#: Of plots and widgets, which Bokeh draws in dark colours on what is behind them.
_CARD = f":host{{background:{LIGHT['paper']};color:{LIGHT['ink']};color-scheme:light}}"
_CARD += f".slick-header-column{{background:{LIGHT['paper']}!important}}"  # of tables that scroll


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
    for part in parts:
        sheet = InlineStyleSheet(css=_TEXT if isinstance(part, Div) else _CARD)
        part.stylesheets = [*part.stylesheets, sheet]
    path.write_text(file_html(whole, INLINE, visible(title), template=_HEAD), encoding="utf-8")


def _html(text: str) -> Div:
    return Div(text=f'{_STYLE}<div class="caesura">{text}</div>', disable_math=True, sizing_mode="stretch_width")
