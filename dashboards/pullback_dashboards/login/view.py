"""What the sign-in form shows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LoginView:
    """The form: where to go on to, and why it is shown again."""

    next: str
    needed: bool
    refusal: str | None = None


def login_view(wanted: str | None, *, needed: bool, refusal: str | None = None) -> LoginView:
    """The view of the form."""
    return LoginView(own_address(wanted), needed, refusal)


def own_address(wanted: str | None) -> str:
    """An address of ours to go on to: another site's, however disguised, becomes the overview."""
    if wanted is None or not wanted.startswith("/") or wanted[1:2] in {"/", "\\"} or not wanted.isprintable():
        return "/"
    return "/" if wanted.startswith(("/login", "/logout")) else wanted
