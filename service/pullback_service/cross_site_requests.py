"""Protection against cross-site requests: pages of other sites must not act through the browser of a user who can reach this service.

Two ways lead past a service that listens on loopback only: a page that writes across sites, and a page whose own name
was pointed at 127.0.0.1 after it had loaded (DNS rebinding), which browsers take for one site with us. The first is
known by what the browser says of the page's origin, the second by the name in `Host`.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def refusal(method: str, headers: Mapping[bytes, bytes], *, local: bool) -> str | None:
    """The reason to refuse a request, or None. `local`: no token is required, so only loopback names are ours."""
    host = headers.get(b"host", b"").decode("latin-1")
    if local and host and not _is_loopback(host):
        return (
            "Without authentication this service answers to loopback names only: open it as 127.0.0.1 or localhost, "
            "or set PULLBACK_AUTH=token and PULLBACK_TOKEN_FILE."
        )
    if method in SAFE_METHODS:
        return None
    origin = headers.get(b"origin")
    foreign = origin is not None and not _same_place(origin.decode("latin-1"), host)
    if foreign or headers.get(b"sec-fetch-site") in {b"cross-site", b"same-site"}:
        return "Requests from pages of other sites are refused."
    return None


def _is_loopback(host: str) -> bool:
    name = _name(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _same_place(origin: str, host: str) -> bool:
    # The scheme may differ where a proxy ends TLS, and `Host` leaves a usual port out just as `Origin` does.
    return origin.partition("://")[2].lower() == host.lower()


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:  # brackets that hold no address
        return ""
