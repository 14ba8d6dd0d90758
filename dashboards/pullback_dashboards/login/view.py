"""The content of the sign-in form."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LoginView:
    """The form: where to go on to, why it is shown again, and whether it stands in the place of what needs a token."""

    next: str
    needed: bool
    refusal: str | None = None
    in_place: bool = False


def login_view(address: str | None, *, needed: bool, refusal: str | None = None, in_place: bool = False) -> LoginView:
    """The view of the form."""
    return LoginView(own_address(address), needed, refusal, in_place)


def own_address(address: str | None) -> str:
    """An address of ours to go on to: another site's, however disguised, becomes the overview."""
    if address is None or not address.startswith("/") or address[1:2] in {"/", "\\"} or not address.isprintable():
        return "/"
    return "/" if address.startswith(("/login", "/logout")) else address
