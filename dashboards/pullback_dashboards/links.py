"""Addresses of pages: every one is made here, with names quoted so that any name survives."""

from urllib.parse import quote, urlencode

PAGE = ".html"
VIA = "via"
"""The parameter of `via`; `project` would narrow the queue and the audit log."""
_FORMATS = (".json", ".csv", ".md", ".svg", ".png", PAGE)


def overview(project: str | None = None, **state: str | int | tuple[str, ...] | None) -> str:
    """The overview of a project."""
    return _with("/", project=project, **state)


def projects() -> str:
    """All projects, with what changed in each."""
    return "/projects"


def workload(project: str, name: str, **state: str | None) -> str:
    """The page of one workload."""
    return _with(f"/projects/{_segment(project)}/workloads/{_last(name)}", **state)


def commit(project: str, sha: str, **state: str | None) -> str:
    """The page of one commit."""
    return _with(f"/projects/{_segment(project)}/commits/{_segment(sha)}", **state)


def case(project: str, sha: str, label: str, **state: str | None) -> str:
    """The page of one case at one commit."""
    return _with(f"/projects/{_segment(project)}/commits/{_segment(sha)}/cases/{_last(label)}", **state)


def compare(project: str, **state: str | None) -> str:
    """Two commits of a project, series by series."""
    return _with(f"/projects/{_segment(project)}/compare", **state)


def explore(project: str, **state: str | None) -> str:
    """Series of a project by what they are."""
    return _with(f"/projects/{_segment(project)}/explore", **state)


def boards() -> str:
    """Boards: one's own, then those of projects."""
    return "/boards"


def board(board_id: str, **state: str | None) -> str:
    """One board."""
    return _with(f"/boards/{_segment(board_id)}", **state)


def pin(address: str) -> str:
    """Choosing the board for what is at an address of ours."""
    return _with("/boards/pin", chart=address)


def settings(*steps: str, **state: str | None) -> str:
    """Settings, or a page of them."""
    return _with("/".join(["/settings", *map(_segment, steps[:-1]), *map(_last, steps[-1:])]), **state)


def help_(heading: str | None = None) -> str:
    """Help, or one heading of it."""
    return f"/help#{heading}" if heading else "/help"


def incidents(project: str, **state: str | int | None) -> str:
    """The incidents of a project."""
    return _with(f"/projects/{_segment(project)}/incidents", **state)


def incidents_badge(project: str, **state: str | None) -> str:
    """The badge of the open incidents of a project."""
    return _with(f"/projects/{_segment(project)}/incidents.badge.svg", **state)


def incident(project: str, incident_id: int) -> str:
    """One incident with its evidence."""
    return f"/projects/{_segment(project)}/incidents/{incident_id}"


def accuracy(project: str) -> str:
    """The page of how often incidents of a project were right."""
    return f"/projects/{_segment(project)}/accuracy"


def feed(project: str, **state: str | None) -> str:
    """The incidents of a project for feed readers."""
    return _with(f"/projects/{_segment(project)}/feed.atom", **state)


def report(report_id: str) -> str:
    """The page of one report."""
    return f"/reports/{_segment(report_id)}"


def jobs(**state: str | None) -> str:
    """The queue."""
    return _with("/jobs", **state)


def job(job_id: int, **state: str | None) -> str:
    """One job with its log."""
    return _with(f"/jobs/{job_id}", **state)


def login(wanted: str) -> str:
    """Signing in, and on to an address of ours."""
    return _with("/login", next=wanted)


def fleet() -> str:
    """Machines and their agents, and how the service is doing."""
    return "/fleet"


def machine(machine_id: int, **state: str | None) -> str:
    """One machine: its noise, how it changed, what it did."""
    return _with(f"/machines/{machine_id}", **state)


def via(address: str, project: str | None) -> str:
    """An address of a page that speaks of no project, with the one that its reader comes from."""
    if project is None:
        return address
    page, mark, place = address.partition("#")
    return f"{page}{'&' if '?' in page else '?'}{urlencode({VIA: project})}{mark}{place}"


def in_format(path: str, query: str, suffix: str) -> str:
    """The address of a page as JSON, CSV or SVG, in the same state."""
    stem = "/overview" if path == "/" else path.removesuffix(PAGE)
    return f"{stem}.{suffix}{'?' + query if query else ''}"


def _with(path: str, **state: str | int | tuple[str, ...] | None) -> str:
    given = {key: value for key, value in state.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _segment(name: str) -> str:
    return quote(name, safe="")


def _last(name: str) -> str:
    """A name at the end of an address: one that ends as another format does, such as `data.json`, says that its page is meant."""
    return _segment(name) + (PAGE if name.endswith(_FORMATS) else "")
