"""A page as Markdown: what its HTML shows, and nothing else.

It is made of the rendered page, so that no page is described twice and its Markdown cannot say anything else. Read is what stands in <main>: headings, sentences, lists, tables, commands. Left out is what only does something (forms, menus,
links to other states) and what is drawn; a closed <details> gives its summary, as it does on the page.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

from pullback_dashboards.wording.markdown import markdown_text

_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_LEFT_OUT = frozenset({"nav", "form", "button", "script", "style", "svg", "input", "select", "progress", "fieldset"})
# Classes of what is a control, or is told to those alone who do not see the page.
_CONTROLS = frozenset({"hidden", "save", "choices", "toggle", "spoken", "filters", "also", "marks", "key", "pin"})
_BLOCKS = frozenset(
    {"article", "div", "dl", "details", "figcaption", "figure", "header", "ol", "p", "pre", "section", "summary", "table"}
    | {"ul", "h1", "h2", "h3", "h4"}
)  # fmt: skip
_LINES = frozenset({"sub", "doubt", "agent", "when", "note"})  # classes that stand on a line of their own
_APART = frozenset({"facts", "newest"})  # classes whose children stand side by side
_WRITTEN = {
    **dict.fromkeys(("h1", "h2", "h3", "h4"), "_heading"),
    **dict.fromkeys(("ul", "ol"), "_list"),
    "dl": "_pairs",
    "pre": "_commands",
    "table": "_table",
}
_PHRASES = frozenset({"a", "b", "strong", "code", "img", "time"})
_BETWEEN = " · "
_BEGINS_A_LIST = re.compile(r"^(\d+)([.)])(?=\s)|^([-+])(?=\s)")


@dataclass
class _Node:
    """An element with its children; text is a plain string."""

    tag: str
    attributes: dict[str, str]
    children: list["_Node | str"] = field(default_factory=list)

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    @property
    def elements(self) -> list["_Node"]:
        return [child for child in self.children if isinstance(child, _Node)]

    @property
    def shown(self) -> bool:
        return self.tag not in _LEFT_OUT and not self.classes & _CONTROLS

    def all(self, *tags: str) -> Iterator["_Node"]:
        """Elements of these tags, in order, not below one another."""
        for child in self.elements:
            if child.tag in tags:
                yield child
            else:
                yield from child.all(*tags)


class _Tree(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = _Node("", {})
        self._open = [self.root]
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = _Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(_Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        place = next((n for n in range(len(self._open) - 1, 0, -1) if self._open[n].tag == tag), None)
        if place is not None:
            del self._open[place:]

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def markdown_of(html: str, address: str) -> str:
    """The page at `address` as Markdown; links become absolute, for the text is to be put elsewhere."""
    main = next(_Tree(html).root.all("main"))
    return "\n\n".join(_Writer(address).blocks(main)) + "\n"


class _Writer:
    def __init__(self, address: str) -> None:
        self._page = address

    def blocks(self, node: _Node) -> Iterator[str]:
        """The paragraphs below a node, with what stands between its blocks as paragraphs of their own."""
        loose: list[_Node | str] = []
        for child in node.children:
            if isinstance(child, _Node) and (not child.shown or child.tag in _BLOCKS):
                yield from self._paragraph(loose)
                loose = []
                if child.shown:
                    yield from self._block(child)
            else:
                loose.append(child)
        yield from self._paragraph(loose)

    def _block(self, node: _Node) -> Iterator[str]:
        if node.tag in _WRITTEN:
            yield from filter(None, [getattr(self, _WRITTEN[node.tag])(node)])
        elif node.classes & _APART:
            yield from self._paragraph([node])
        elif node.tag == "details" and "open" not in node.attributes:
            yield from self._paragraph([child for child in node.elements if child.tag == "summary"])
        elif any(child.tag in _BLOCKS or not child.shown for child in _descendants(node)):
            yield from self.blocks(node)
        else:
            yield from self._paragraph(node.children)

    def _heading(self, node: _Node) -> str:
        text = self._line(node.children)
        return f"{'#' * int(node.tag[1])} {text}" if text else ""

    def _list(self, node: _Node) -> str:
        listed = (self._line(item.children) for item in node.all("li") if item.shown)
        return "\n".join(f"- {text}" for text in listed if text)

    def _pairs(self, node: _Node) -> str:
        lines, term = [], ""
        for child in node.all("dt", "dd"):
            text = self._line(child.children)
            if child.tag == "dt":
                term = text
            elif text:
                lines.append(f"- {term}: {text}" if term else f"- {text}")
        return "\n".join(lines)

    def _commands(self, node: _Node) -> str:
        text = _plain(node).strip("\n")
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        return f"{fence}\n{text}\n{fence}"

    def _paragraph(self, children: list[_Node | str]) -> Iterator[str]:
        text = self._line(children)
        if text:
            yield _BEGINS_A_LIST.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", text)

    def _table(self, node: _Node) -> str:
        head = self._grid([row for part in node.all("thead") for row in part.all("tr")])
        body = self._grid([row for part in node.all("tbody") for row in part.all("tr")])
        width = max((len(row) for row in [*head, *body]), default=0)
        if not body or not width:
            return ""
        # A second row of heads says more of the columns that the first one joined: "time: fused".
        names = [
            ": ".join(dict.fromkeys(row[n][0] for row in head if n < len(row) and row[n][0])) for n in range(width)
        ]
        right = [any(n < len(row) and row[n][1] for row in [*head[-1:], *body[:1]]) for n in range(width)]
        lines = [names, ["---:" if flag else "---" for flag in right]]
        lines += [[row[n][0] if n < len(row) else "" for n in range(width)] for row in body]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def _grid(self, rows: list[_Node]) -> list[list[tuple[str, bool]]]:
        """Rows of cells as text, each with whether it is a number; what spans columns stands in the first, what spans rows in all."""
        grid: list[list[tuple[str, bool]]] = []
        below: dict[int, tuple[int, tuple[str, bool]]] = {}  # column -> rows it still reaches down, the cell
        for row in rows:
            cells: list[tuple[str, bool]] = []
            in_head = any(cell.attributes.get("scope") == "colgroup" for cell in row.elements)
            for cell in row.elements:
                cells += _reaching_down(below, len(cells))
                told = (self._line(cell.children), "number" in cell.classes)
                columns = int(cell.attributes.get("colspan", 1))
                reach = int(cell.attributes.get("rowspan", 1))
                for n in range(columns):
                    if reach > 1:
                        below[len(cells)] = (reach - 1, told)
                    cells.append(told if n == 0 or in_head else ("", told[1]))
            cells += _reaching_down(below, len(cells))
            grid.append(cells)
        return grid

    def _line(self, children: list[_Node | str]) -> str:
        """Text on one line; what the page sets on lines of its own is set apart by a dot."""
        pieces = re.sub(r"[ \t\r\n]+", " ", "".join(self._inline(children))).split("\0")
        return _BETWEEN.join(piece for piece in (each.strip() for each in pieces) if piece)

    def _inline(self, children: list[_Node | str]) -> Iterator[str]:
        for child in children:
            if isinstance(child, str):
                yield markdown_text(child.replace("\0", ""))
            elif child.shown:
                yield from self._element(child)

    def _element(self, node: _Node) -> Iterator[str]:
        if node.tag in _PHRASES or (node.tag in {"span", "dd"} and "sha" in node.classes):
            yield self._phrase(node)
        elif node.tag == "details" and "open" not in node.attributes:
            yield from self._inline([child for child in node.elements if child.tag == "summary"])
        elif "mark" in node.classes:
            yield f"{self._line(node.children)} "
        elif node.classes & _APART:
            yield "\0".join(["", *("".join(self._inline([child])) for child in node.elements), ""])
        elif node.tag in _BLOCKS | {"br", "li", "dt"} or node.classes & _LINES:
            yield "\0".join(["", "".join(self._inline(node.children)), ""])
        else:
            yield ": " if node.tag == "dd" else ""
            yield from self._inline(node.children)

    def _phrase(self, node: _Node) -> str:
        if node.tag == "img":
            return f"![{markdown_text(node.attributes.get('alt', ''))}]({self._address(node.attributes['src'])})"
        if node.tag == "time":
            return _instant(node.attributes.get("datetime", ""))
        if node.tag in {"code", "span", "dd"}:
            return _code(_plain(node))
        text = self._line(node.children)
        if not text or node.tag != "a" or "cell" in node.classes:  # the link of a row is enough for its cells
            return f"**{text}**" if text and node.tag != "a" else text
        return f"[{text}]({self._address(node.attributes.get('href', ''))})"

    def _address(self, href: str) -> str:
        return urljoin(self._page, href).replace("(", "%28").replace(")", "%29").replace(" ", "%20")


def _reaching_down(below: dict[int, tuple[int, tuple[str, bool]]], column: int) -> list[tuple[str, bool]]:
    results = []
    while column in below:
        left, cell = below.pop(column)
        if left > 1:
            below[column] = (left - 1, cell)
        results.append(cell)
        column += 1
    return results


def _descendants(node: _Node) -> Iterator[_Node]:
    for child in node.elements:
        yield child
        yield from _descendants(child)


def _plain(node: _Node) -> str:
    return "".join(child if isinstance(child, str) else _plain(child) for child in node.children)


def _code(text: str) -> str:
    """A span of code; a bar would end a cell of a table, so it is told as its entity outside of one."""
    text = " ".join(text.split())
    if not text:
        return ""
    return f"`{text}`" if not set("`|") & set(text) else markdown_text(text)


def _instant(iso: str) -> str:
    """A moment, in UTC to the minute: a distance like "3 h ago" is wrong as soon as it is pasted."""
    return f"{iso[:10]} {iso[11:16]} UTC" if len(iso) > 15 else iso
