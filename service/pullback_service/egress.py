"""Addresses named by users that the service, or an agent on its behalf, is allowed to connect to.

Public ones only: whoever may change a project must not reach what is inside of the network of a server. The operator may
allow networks that are not public.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Finds the addresses of a host."""

HOST: Final = re.compile(r"\w(?:[\w.-]*\w)?|[0-9a-f:.]+", re.ASCII)
"""A name, or an address of version 6. Other letters, `%31` and a dash in front would become another host, or an option, later on."""
_PRIVATE_NAMES: Final = (
    "localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "private", "arpa",
)  # fmt: skip
_METADATA: Final = frozenset({ip_address("168.63.129.16")})
"""Addresses that count as public and answer about the machine that asks: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""


class NoAddressError(Exception):
    """A host has no address that may be connected to; the message says why."""


def read_networks(text: str) -> tuple[Network, ...]:
    """The networks of a list like `10.0.0.0/8, fd00::/8`; a ValueError where one is none."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def address_in(host: str) -> Address | None:
    """The address that a host is, in whatever form, or None of a name."""
    try:
        return ip_address(host)
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f000001 and whatever else the C library takes
        except OSError:
            return None


def is_private(host: str) -> bool:
    """True for an address that is not public, in whatever form, and for a name that only some network knows."""
    addresses = address_in(host)
    if addresses is None:
        return "." not in host or host.rpartition(".")[2].lower() in _PRIVATE_NAMES
    return not is_public(addresses)


def is_public(address: Address) -> bool:
    """True for an address that everybody reaches."""
    if isinstance(address, IPv6Address):
        if address.is_site_local:
            return False
        address = address.ipv4_mapped or address.sixtofour or address
    if address in _METADATA or not address.is_global:
        return False
    return not (address.is_multicast or address.is_reserved)  # reserved: whatever leads to addresses of version 4


def is_allowed(address: Address, networks: Iterable[Network]) -> bool:
    """True for an address in one of some networks."""
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return any(address in network for network in networks)


async def resolve(host: str, port: int) -> Sequence[Address]:
    """The addresses of a host, as the system's resolver answers."""
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(place[0])) for *_, place in addresses))


async def addresses_to_connect(
    host: str, port: int, networks: Sequence[Network], *, resolver: Resolve = resolve
) -> Sequence[Address]:
    """The addresses of a host, asked for once and all of them checked: connect to these, and to no later answer.

    One that is neither public nor in an allowed network refuses the host.
    """
    try:
        addresses = await resolver(host, port)
    except OSError as error:
        raise NoAddressError(f"{host} has no address ({error.strerror or error})") from error
    for address in addresses:
        if not (is_public(address) or is_allowed(address, networks)):
            raise NoAddressError(
                f"{host} is at {address}, which is a private address: give a public address, or let the operator "
                "add the network to PULLBACK_ALLOW_NETWORKS"
            )
    if not addresses:
        raise NoAddressError(f"{host} has no address")
    return addresses
