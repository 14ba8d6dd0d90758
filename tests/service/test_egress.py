"""Which addresses may be connected to because somebody who is no operator named them."""

from ipaddress import ip_address

import pytest

from pullback_service.egress import NoAddressError, addresses_to_connect, is_private, is_public, read_networks

PUBLIC = ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"]
INSIDE = [  # none is bound to
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "168.63.129.16", "100.100.100.200", "0.0.0.0",  # noqa: S104 - refused, not bound
    "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00:ec2::254", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::", "fec0::1", "ff02::1", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_reached_by_everybody(address):
    assert is_public(ip_address(address))
    assert not is_private(address)


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_of_networks_are_not_public(address):
    assert not is_public(ip_address(address))
    assert is_private(address)


def test_networks_are_read_from_a_list():
    assert [str(network) for network in read_networks("10.0.0.0/8, fd00::/8,127.0.0.1,")] == [
        "10.0.0.0/8", "fd00::/8", "127.0.0.1/32",
    ]  # fmt: skip
    assert read_networks("") == ()
    with pytest.raises(ValueError, match="host bits"):
        read_networks("10.0.0.1/8")


@pytest.mark.anyio
async def test_one_answer_inside_refuses_the_host_whatever_the_others_are():
    async def resolver(host, port):
        return [ip_address("1.1.1.1"), ip_address("10.0.0.7")]

    with pytest.raises(NoAddressError, match=r"hooks\.example is at 10\.0\.0\.7, .* PULLBACK_ALLOW_NETWORKS"):
        await addresses_to_connect("hooks.example", 443, (), resolver=resolver)
    allowed = await addresses_to_connect("hooks.example", 443, read_networks("10.0.0.0/24"), resolver=resolver)
    assert [str(address) for address in allowed] == ["1.1.1.1", "10.0.0.7"]


@pytest.mark.anyio
async def test_a_host_without_an_address_is_said_in_a_sentence():
    async def resolver(host, port):
        raise OSError(-2, "Name or service not known")

    with pytest.raises(NoAddressError, match=r"hooks\.example has no address \(Name or service not known\)"):
        await addresses_to_connect("hooks.example", 443, (), resolver=resolver)


@pytest.mark.anyio
async def test_the_systems_resolver_is_asked():
    found = await addresses_to_connect("127.0.0.1", 80, read_networks("127.0.0.0/8"))
    assert [str(address) for address in found] == ["127.0.0.1"]
