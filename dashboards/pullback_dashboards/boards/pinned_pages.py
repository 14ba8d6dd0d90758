"""Pinned charts as addresses of pages, and back: what is stored are a kind, a project, perhaps a workload, names and values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from pullback_dashboards import links
from pullback_dashboards.charts.static_chart import BESIDE_OTHERS, NARROWEST
from pullback_dashboards.history import metric_label
from pullback_service.commits.ref_names import FULL_HASH

_HOW = frozenset({"split", "y", "last"})
_SPOKEN_FIRST = ("workload", "case", "param", "metric", "variant", "kind", "machine", "dtype", "device")
# Where one is in a page, not what it shows.
_MOMENTARY = frozenset({"start", "open", "edit"})


@dataclass(frozen=True)
class PinnedPage:
    """A page of the dashboard in one state."""

    kind: str
    project: str
    workload: str | None
    query: Mapping[str, Sequence[str]]

    @property
    def address(self) -> str:
        """The address of the page."""
        pairs = [(name, value) for name, values in self.query.items() for value in values]
        return f"{self._path}?{urlencode(pairs)}" if pairs else self._path

    @property
    def image(self) -> str | None:
        """The address of its chart as an image; a comparison has none."""
        return self._drawn(BESIDE_OTHERS)

    @property
    def narrow_image(self) -> str | None:
        """The same for a phone."""
        return self._drawn(NARROWEST)

    @property
    def words(self) -> str:
        """The page in words, as far as its address tells: the title of a chart that was given none."""
        if self.kind == "compare":
            head, base = (", ".join(map(_short, self.query.get(name, ()))) for name in ("head", "base"))
            here, there = (", ".join(self.query.get(name, ())) for name in ("head_machine", "base_machine"))
            commits = f"{head} against {base or ('the same commit' if there else 'its first parent')}"
            return f"{commits}, {here} against {there}" if there else commits
        if self.kind == "workload":
            case = self.query.get("case") or [self.workload or ""]
            return ", ".join([*case, *map(metric_label, self.query.get("plot", ()))])
        # In an order of our own: stored names have lost that of their address.
        parts = [
            metric_label(value)
            if name == "metric"
            else f"{name.removeprefix('param.')}={value}"
            if "." in name
            else value
            for name, values in sorted(self.query.items(), key=lambda item: _place(item[0]))
            if name not in _HOW
            for value in values
        ]
        return ", ".join(parts) or "all series"

    def _drawn(self, width: int) -> str | None:
        if self.kind == "compare":
            return None
        path, _, query = self.address.partition("?")
        return links.in_format(path, f"{query}&width={width}".lstrip("&"), "svg")

    @property
    def _path(self) -> str:
        if self.kind == "workload":
            return links.workload(self.project, self.workload or "")
        return links.compare(self.project) if self.kind == "compare" else links.explore(self.project)


def _place(name: str) -> tuple[int, str]:
    stem = name.partition(".")[0]
    return (_SPOKEN_FIRST.index(stem) if stem in _SPOKEN_FIRST else len(_SPOKEN_FIRST)), name


def _short(name: str) -> str:
    """A commit as pages name it; a branch stays as it is."""
    return name[:9] if FULL_HASH.fullmatch(name) else name


def read_address(address: str) -> PinnedPage | None:
    """The page at an address that `links` made; None where it is none that can be pinned."""
    parts = urlsplit(address)
    steps = [unquote(step) for step in parts.path.split("/")]
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _MOMENTARY:
            query.setdefault(name, []).append(value)
    match steps if not parts.netloc else []:
        case ["", "projects", project, ("explore" | "compare") as kind]:
            # A comparison without commits is a form.
            return PinnedPage(kind, project, None, query) if kind == "explore" or query.get("head") else None
        case ["", "projects", project, "workloads", workload]:
            return PinnedPage("workload", project, workload, query)
    return None
