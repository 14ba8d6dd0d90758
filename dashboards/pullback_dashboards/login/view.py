"""The content of the sign-in form."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LoginView:
    """The form: where to go on to, why it is shown again, and whether it stands in the place of what needs a token."""

    next: str
    needed: bool
    refusal: str | None = None
    in_place: bool = False


def login_view(wanted: str | None, *, needed: bool, refusal: str | None = None, in_place: bool = False) -> LoginView:
    """The view of the form."""
    return LoginView(own_address(wanted), needed, refusal, in_place)


def own_address(wanted: str | None) -> str:
    """An address of ours to go on to: another site's, however disguised, becomes the overview."""
    if wanted is None or not wanted.startswith("/") or wanted[1:2] in {"/", "\\"} or not wanted.isprintable():
        return "/"
    return "/" if wanted.startswith(("/login", "/logout")) else wanted
