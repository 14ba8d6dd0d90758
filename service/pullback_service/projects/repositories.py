"""Addresses of repositories that agents fetch commits from.

Whoever may change a project chooses where agents connect to: so it is an address that everybody can reach, and it holds no
secret, which every agent and every reader of the project would learn.
"""

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from pullback_service.fields import Name

_REMEDY = "give one like https://git.example/group/project.git or ssh://git@git.example/group/project.git"
_SCP = re.compile(r"(?P<user>[\w.-]+)@(?P<host>[\w.-]+):(?P<path>[^/\s].*)")
_HOST = re.compile(r"\w(?:[\w.-]*\w)?|[0-9a-f:.]+", re.ASCII)
"""A name, or an address of version 6. Other letters, `%31` and a dash in front would become another host, or an option, later on."""
_PRIVATE_NAMES = (
    "localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "private", "arpa",
)  # fmt: skip


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
    if not _HOST.fullmatch(host):
        raise _unfit(
            f"is on no host that can be told ({host!r}): letters, digits, dots and dashes; xn--… has all others"
        )
    if parts.query or parts.fragment or not parts.path.strip("/"):
        raise _unfit(f"names no repository; {_REMEDY}")
    if _is_private(host):
        raise _unfit("is an address inside of some network; give one that every agent can reach")
    return address.rstrip("/").removesuffix(".git")


def _is_private(host: str) -> bool:
    """True if a host is an address that is not public, in whatever form, or a name that only some network knows."""
    found: IPv4Address | IPv6Address
    try:
        found = ip_address(host)
    except ValueError:
        try:
            found = IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f000001 and whatever else the C library takes
        except OSError:
            return "." not in host or host.rpartition(".")[2].lower() in _PRIVATE_NAMES
    if isinstance(found, IPv6Address):
        if found.is_site_local:
            return True
        found = found.ipv4_mapped or found.sixtofour or found
    return (
        not found.is_global or found.is_multicast or found.is_reserved
    )  # reserved: whatever leads to addresses of version 4


def _unfit(why: str) -> PydanticCustomError:
    return PydanticCustomError("repository", "The repository {why}", {"why": why})


RepositoryAddress = Annotated[Name, AfterValidator(fit_repository)]
