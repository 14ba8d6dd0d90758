"""The scope that every endpoint needs: the one table to read before exposing a service.

An address that is missing here needs `admin`, so that a forgotten line closes a door instead of opening one; a test
walks all routes and fails for it all the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pullback_service.addresses import API, OPENAPI
from pullback_service.caller import Scope


@dataclass(frozen=True, slots=True)
class Need:
    """The requirement of an endpoint. `scope` is None where everybody is served."""

    scope: Scope | None
    public: bool = False
    """True if anybody may read it of projects that are public."""
    audited: bool = True
    """True if a write leaves a line in the audit log. What agents say every few seconds is kept with their attempts."""
    limited: bool = False
    """True if the address is charged for it, although it needs no token."""


OPEN = Need(None)
OPEN_LIMITED = Need(None, limited=True)
READ = Need("read", public=True)
READ_INSIDE = Need("read")  # tells of machines, agents or the service itself, whichever project they serve
OWN = Need("read")  # writes to boards of one's own; of projects' boards their queries ask for more
UPLOAD = Need("upload")
AGENT = Need("agent")
AGENT_OFTEN = Need("agent", audited=False)
ADMIN = Need("admin")

ENDPOINTS: Mapping[str, Need] = {
    "GET /healthz": OPEN,
    "GET /readyz": OPEN_LIMITED,
    "GET /metrics": READ_INSIDE,
    "GET /status": READ_INSIDE,
    f"GET {OPENAPI}": OPEN_LIMITED,
    f"GET {API}/whoami": OPEN_LIMITED,
    f"GET {API}/projects": READ,
    f"POST {API}/projects": ADMIN,
    f"GET {API}/projects/{{name:path}}": READ,
    f"PATCH {API}/projects/{{name:path}}": ADMIN,
    f"GET {API}/commits": READ,
    f"POST {API}/commits": UPLOAD,
    f"GET {API}/branches": READ,
    f"GET {API}/merge-base": READ,
    f"GET {API}/machines": READ_INSIDE,
    f"PATCH {API}/machines/{{machine_id}}": ADMIN,
    f"GET {API}/machines/{{machine_id}}/noise": READ_INSIDE,
    f"GET {API}/machines/{{machine_id}}/changes": READ_INSIDE,
    f"POST {API}/reports": UPLOAD,
    f"GET {API}/reports": READ,
    f"GET {API}/reports/{{report_id}}": READ,
    f"GET {API}/reports/{{report_id}}/body": READ,
    f"POST {API}/reports/{{report_id}}/withdraw": UPLOAD,
    f"GET {API}/series": READ,
    f"GET {API}/series/facets": READ,
    f"GET {API}/series/{{series_id}}/points": READ,
    f"GET {API}/points": READ,
    f"GET {API}/comparisons": READ,
    f"GET {API}/checks": READ,
    f"GET {API}/matrix": READ,
    f"GET {API}/incidents": READ,
    f"GET {API}/incidents/accuracy": READ,
    f"GET {API}/incidents/{{incident_id}}": READ,
    f"POST {API}/incidents/{{incident_id}}/verdict": UPLOAD,
    f"DELETE {API}/incidents/{{incident_id}}/verdict": UPLOAD,
    f"PUT {API}/incidents/{{incident_id}}/assignee": UPLOAD,
    f"POST {API}/incidents/{{incident_id}}/confirm": UPLOAD,
    f"POST {API}/incidents/{{incident_id}}/bisect": UPLOAD,
    f"GET {API}/rules": READ_INSIDE,
    f"PUT {API}/rules": UPLOAD,
    f"GET {API}/boards": READ,
    f"POST {API}/boards": OWN,
    f"GET {API}/boards/{{board_id}}": READ,
    f"PATCH {API}/boards/{{board_id}}": OWN,
    f"DELETE {API}/boards/{{board_id}}": OWN,
    f"POST {API}/boards/{{board_id}}/charts": OWN,
    f"PATCH {API}/boards/{{board_id}}/charts/{{chart_id}}": OWN,
    f"DELETE {API}/boards/{{board_id}}/charts/{{chart_id}}": OWN,
    f"POST {API}/jobs": UPLOAD,
    f"GET {API}/jobs": READ,
    f"GET {API}/jobs/{{job_id}}": READ,
    f"GET {API}/jobs/{{job_id}}/log": READ,
    f"GET {API}/jobs/{{job_id}}/log/stream": READ,
    f"PATCH {API}/jobs/{{job_id}}": UPLOAD,
    f"POST {API}/jobs/{{job_id}}/cancel": UPLOAD,
    f"POST {API}/jobs/{{job_id}}/retry": UPLOAD,
    f"POST {API}/jobs/{{job_id}}/approve": ADMIN,
    f"POST {API}/backfills": UPLOAD,
    f"POST {API}/jobs/{{job_id}}/attempts/{{number}}/heartbeat": AGENT_OFTEN,
    f"PUT {API}/jobs/{{job_id}}/attempts/{{number}}/log": AGENT_OFTEN,
    f"POST {API}/jobs/{{job_id}}/attempts/{{number}}/report": AGENT,
    f"POST {API}/jobs/{{job_id}}/attempts/{{number}}/fail": AGENT,
    f"POST {API}/agents/enroll": AGENT,
    f"GET {API}/agents": READ_INSIDE,
    f"POST {API}/agents/{{agent_id}}/claim": AGENT_OFTEN,
    f"GET {API}/tokens": ADMIN,
    f"POST {API}/tokens": ADMIN,
    f"POST {API}/tokens/{{token_id}}/revoke": ADMIN,
    f"POST {API}/enrolments": ADMIN,
    f"GET {API}/audit": ADMIN,
    f"GET {API}/channels": ADMIN,
    f"POST {API}/channels": ADMIN,
    f"DELETE {API}/channels/{{channel_id}}": ADMIN,
    f"POST {API}/channels/{{channel_id}}/test": ADMIN,
    f"GET {API}/channels/{{channel_id}}/deliveries": ADMIN,
    # Pages; their other formats (.json, .csv, .md, …) need what they need.
    "GET /": READ,
    "GET /overview": READ,
    "GET /compare": READ,
    "GET /explore": READ,
    "GET /incidents": READ,
    "GET /boards": READ,
    "GET /boards/pin": READ,
    "GET /boards/{board_id}": READ,
    "GET /jobs/{job_id}": READ,
    "GET /reports/{report_id}": READ,
    "GET /projects": READ,
    "GET /projects/{project:path}": READ,
    "GET /projects/{project:path}/accuracy": READ,
    "GET /projects/{project:path}/commits/{sha}": READ,
    "GET /projects/{project:path}/commits/{sha}/cases/{case:path}": READ,
    "GET /projects/{project:path}/compare": READ,
    "GET /projects/{project:path}/explore": READ,
    "GET /projects/{project:path}/feed": READ,
    "GET /projects/{project:path}/incidents": READ,
    "GET /projects/{project:path}/incidents/{incident_id}": READ,
    "GET /projects/{project:path}/workloads/{workload:path}": READ,
    # Triage of incidents, as forms.
    "POST /projects/{project:path}/incidents": UPLOAD,
    "POST /projects/{project:path}/incidents/{incident_id}/verdict": UPLOAD,
    "POST /projects/{project:path}/incidents/{incident_id}/assignee": UPLOAD,
    "POST /projects/{project:path}/incidents/{incident_id}/confirm": UPLOAD,
    "POST /projects/{project:path}/incidents/{incident_id}/bisect": UPLOAD,
    "GET /login": OPEN_LIMITED,
    "POST /login": OPEN_LIMITED,
    "POST /logout": OPEN_LIMITED,
    "GET /help": OPEN_LIMITED,
    "POST /boards": OWN,
    "POST /boards/pin": OWN,
    "POST /boards/{board_id}": OWN,
    "POST /boards/{board_id}/charts/{chart_id}": OWN,
    "GET /settings": READ_INSIDE,
    "GET /settings/projects/{project:path}": READ_INSIDE,
    "POST /settings/projects": ADMIN,
    "POST /settings/projects/{project:path}": ADMIN,
    "POST /settings/projects/{project:path}.html": ADMIN,
    "POST /settings/machines/{machine_id}": ADMIN,
    "GET /settings/tokens": ADMIN,
    "POST /settings/tokens": ADMIN,
    "POST /settings/tokens/{token_id}/revoke": ADMIN,
    "POST /settings/enrolments": ADMIN,
    "GET /settings/audit": ADMIN,
    "GET /static/{digest}/{name}": OPEN,
    "GET /jobs": READ_INSIDE,
    "GET /fleet": READ_INSIDE,
    "GET /machines/{machine_id}": READ_INSIDE,
    # The decisions about a job, as forms.
    "POST /jobs/{job_id}/cancel": UPLOAD,
    "POST /jobs/{job_id}/retry": UPLOAD,
    "POST /jobs/{job_id}/approve": ADMIN,
}


_FORMAT = re.compile(r"(\.[a-z]+)+$")
"""The ending of the address of another form of a page: `/settings/audit.csv`."""


def need_of(method: str, path: str) -> Need:
    """The requirement of a route, by its method and its path as it was declared."""
    method = "GET" if method == "HEAD" else method
    declared = ENDPOINTS.get(f"{method} {path}")
    if declared is not None:
        return declared
    return ENDPOINTS.get(f"{method} {page_of(path)}", ADMIN) if method == "GET" else ADMIN


def page_of(path: str) -> str:
    """The page that a route gives in another form, or the route itself."""
    return _FORMAT.sub("", path)
