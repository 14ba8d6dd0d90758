"""All pages of the dashboard, mounted on the service's application. Their addresses can be read here in one place.

    /                                           overview, or where no project is named and there are several:
    /projects                                   all projects, with what changed in each
    /projects/{project}                         leads to its overview
    /projects/{project}/workloads/{workload}    one workload across commits
    /projects/{project}/commits/{sha}           what was measured at a commit
    /projects/{project}/commits/{sha}/cases/{case}
                                                one case at a commit, compared with the previous measured commit
    /projects/{project}/compare                 two commits, series by series
    /projects/{project}/explore                 series by what they are, drawn side by side
    /projects/{project}/incidents               incidents, open ones first
    /projects/{project}/incidents/{id}          one incident: its evidence and its history
    /projects/{project}/feed.atom               incidents, for feed readers
    /projects/{project}/accuracy                how often incidents were right, by verdicts
    /reports/{id}                               one upload
    /boards, /boards/{id}                       pages of pinned charts
    /boards/pin                                 choosing the board for a chart
    /settings, /settings/projects/{project}     settings of machines and projects
    /settings/tokens, /settings/audit           tokens, and the audit log
    /fleet                                      machines, agents, and the state of the service
    /machines/{id}                              one machine: its noise, changes and jobs
    /jobs, /jobs/{id}                           the queue; one job with its log
    /login, /logout                             signing in with a token, and out
    /help                                       how to read charts, how to upload, glossary
    /static/{hash}/{name}                       style sheet, scripts, Plotly

Every page is JSON at the same address with `.json` and Markdown with `.md`; tables are CSV with `.csv`. A workload and explore
have a chart with `.svg`, a workload and the incidents a badge with `.badge.svg`, for READMEs and boards. Addresses without a
project lead to the project of the newest upload.
"""

from fastapi import FastAPI, Request, Response

from pullback_dashboards import errors
from pullback_dashboards.accuracy.page import router as accuracy_router
from pullback_dashboards.assets import NAMES, asset
from pullback_dashboards.boards.page import router as boards_router
from pullback_dashboards.case.page import router as case_router
from pullback_dashboards.commit.page import router as commit_router
from pullback_dashboards.compare.page import router as compare_router
from pullback_dashboards.compression import CompressionMiddleware
from pullback_dashboards.explore.page import router as explore_router
from pullback_dashboards.feed.page import router as feed_router
from pullback_dashboards.fleet.page import router as fleet_router
from pullback_dashboards.help.page import router as help_router
from pullback_dashboards.incident.page import router as incident_router
from pullback_dashboards.incidents.page import router as incidents_router
from pullback_dashboards.job.page import router as job_router
from pullback_dashboards.login.page import router as login_router
from pullback_dashboards.machine.page import router as machine_router
from pullback_dashboards.overview.page import named as named_router
from pullback_dashboards.overview.page import router as overview_router
from pullback_dashboards.projects.page import router as projects_router
from pullback_dashboards.queue.page import router as queue_router
from pullback_dashboards.report.page import router as report_router
from pullback_dashboards.routers import page_router
from pullback_dashboards.settings.page import router as settings_router
from pullback_dashboards.workload.page import router as workload_router
from pullback_service.errors import NotFoundError

_static = page_router()
_ROUTERS = (
    overview_router,
    projects_router,
    workload_router,
    case_router,
    commit_router,
    compare_router,
    explore_router,
    incidents_router,
    incident_router,
    accuracy_router,
    report_router,
    fleet_router,
    machine_router,
    queue_router,
    job_router,
    help_router,
    login_router,
    feed_router,
    boards_router,
    settings_router,
    named_router,
    _static,
)


def mount(app: FastAPI) -> None:
    """Add the pages to the service's application, and give its errors the pages' style where a page was asked for."""
    for router in _ROUTERS:
        app.router.routes.extend(router.routes)
    errors.style(app)
    app.add_middleware(CompressionMiddleware)


@_static.get("/static/{digest}/{name}")
async def static(digest: str, name: str, request: Request) -> Response:
    """An asset, cached for ever under its hash; an old hash still finds the present file, for a minute."""
    if name not in NAMES:
        raise NotFoundError(f"There is no file {name!r} among the pages' assets.")
    file = asset(name)
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if digest == file.digest else "public, max-age=60",
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.gzipped, media_type=file.media_type, headers=headers | {"content-encoding": "gzip"})
    return Response(file.body, media_type=file.media_type, headers=headers)
