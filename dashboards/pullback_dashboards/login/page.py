"""`/login` and `/logout`: the two forms of the dashboard that write.

Browsers say where a form comes from, and the service refuses those of other sites; signing out needs the CSRF token of
the page as well.
"""

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from pullback_dashboards.login.view import login_view, own_address
from pullback_dashboards.rendering import json_response, page
from pullback_dashboards.routers import page_router
from pullback_service.access.authentication import KnownGate
from pullback_service.audit.trail import note, note_nothing
from pullback_service.errors import AuthenticationError, ForbiddenError
from pullback_service.logins.cookies import COOKIE, clear_cookie, has_csrf_token, read_form, set_cookie
from pullback_service.logins.queries import close_login
from pullback_service.sessions import WriteSession

router = page_router()

SEE_OTHER = 303


@router.get("/login.json")
async def login_json(request: Request, gate: KnownGate) -> Response:
    """Tell programs that a token is needed here, and where signing in leads."""
    return json_response(login_view(request.query_params.get("next"), needed=gate.required))


@router.get("/login")
async def login_page(request: Request, gate: KnownGate) -> Response:
    """The form."""
    view = login_view(request.query_params.get("next"), needed=gate.required)
    return page(request, "login.html", title="Sign in", view=view, formats=("json",))


@router.post("/login")
async def sign_in(request: Request, session: WriteSession, gate: KnownGate) -> Response:
    """Take a token, keep a login for it and go on to where somebody wanted to go."""
    form = await read_form(request)
    try:
        secret, name = await gate.sign_in(session, form.get("token", "").strip())
    except (AuthenticationError, ForbiddenError) as error:
        note_nothing(session)
        view = login_view(form.get("next"), needed=gate.required, refusal=error.detail)
        return page(request, "login.html", title="Sign in", view=view, status=error.status)
    note(session, subject=f"login with {name}")
    answer = RedirectResponse(own_address(form.get("next")), status_code=SEE_OTHER)
    set_cookie(request, answer, secret)
    return answer


@router.post("/logout")
async def sign_out(request: Request, session: WriteSession) -> Response:
    """End the login of this browser."""
    secret = request.cookies.get(COOKIE)
    if secret is not None:
        if not await has_csrf_token(request, secret):
            raise ForbiddenError("This form has expired or came from another site: reload the page and try again.")
        await close_login(session, secret)
    answer = RedirectResponse("/login", status_code=SEE_OTHER)
    clear_cookie(answer)
    return answer
