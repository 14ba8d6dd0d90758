"""Addresses of repositories that agents fetch commits from.

Whoever may change a project chooses where agents connect to: so it is an address that everybody can reach, and it holds no
secret, which every agent and every reader of the project would learn.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from pullback_service.egress import HOST, is_private
from pullback_service.fields import Name

_REMEDY = "give one like https://git.example/group/project.git or ssh://git@git.example/group/project.git"
_SCP = re.compile(r"(?P<user>[\w.-]+)@(?P<host>[\w.-]+):(?P<path>[^/\s].*)")


def fit_repository(address: str) -> str:
    """The address as it is stored; an error where agents cannot or must not fetch from it."""
    scp = _SCP.fullmatch(address)
    if scp is not None:
        address = f"ssh://{scp['user']}@{scp['host']}/{scp['path']}"
    try:
        parts = urlsplit(address)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise _unfit(f"is no address ({error}); {_REMEDY}") from error
    if parts.scheme not in ("https", "ssh") or not host or re.search(r"\s", address):
        raise _unfit(f"is no https or ssh address; {_REMEDY}")
    if parts.password is not None or (parts.scheme == "https" and parts.username is not None):
        raise _unfit("holds a password or token; leave it out, and give it to git on the agents (git help credentials)")
    if not HOST.fullmatch(host):
        raise _unfit(
            f"has no valid host ({host!r}); hosts have letters, digits, dots and dashes, others are written as xn--…"
        )
    if parts.query or parts.fragment or not parts.path.strip("/"):
        raise _unfit(f"names no repository; {_REMEDY}")
    if is_private(host):
        raise _unfit("is a private address; give one that every agent can reach")
    return address.rstrip("/").removesuffix(".git")


def _unfit(why: str) -> PydanticCustomError:
    return PydanticCustomError("repository", "The repository {why}", {"why": why})


RepositoryAddress = Annotated[Name, AfterValidator(fit_repository)]
