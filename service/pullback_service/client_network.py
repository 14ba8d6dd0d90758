"""The network of a client: limits are for networks, as one host with IPv6 has 2^64 addresses."""

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network
from typing import Final

_PREFIX: Final = 64
"""Bits of an address of IPv6 that one host or household is given by its provider."""


@lru_cache(maxsize=1_000)
def network_of(address: str) -> str:
    """The network of an address: of IPv4 the address itself, of IPv6 its /64."""
    try:
        found = IPv6Address(address)
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found), _PREFIX), strict=False))
