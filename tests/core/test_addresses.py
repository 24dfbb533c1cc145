from ipaddress import IPv4Network, IPv6Network, ip_address

import pytest

from horai.core.addresses import AddressPolicy, parse_networks

PUBLIC_ONLY = AddressPolicy()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",  # carrier NAT: not `is_private`
        "100.100.100.200",  # Alibaba's metadata service
        "169.254.169.254",  # AWS's, GCP's, Azure's
        "192.0.0.192",  # Oracle's: `is_global` before Python 3.12.4
        "168.63.129.16",  # Azure's host
        "192.88.99.1",
        "198.18.0.1",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",  # multicast is `is_global`
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",  # `is_global`
        "ff02::1",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
        "100::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str):
    assert not PUBLIC_ONLY.permits(address)
    assert not PUBLIC_ONLY.permits(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::ffff:169.254.169.254",
        "::ffff:127.0.0.1%1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::7f00:1",
        "64:ff9b:1:7f00:0:100:808:808",  # 127.0.0.1 by the /48 form, though it ends in 8.8.8.8
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:7f00:1::f7f7:f7f7",  # Teredo: server 127.0.0.1, client 8.8.8.8
        "2001:0:808:808::80ff:fffe",  # Teredo: server 8.8.8.8, client 127.0.0.1
    ],
)
def test_an_ipv6_form_is_judged_by_the_ipv4_address_it_carries(address: str):
    assert not PUBLIC_ONLY.permits(address)


@pytest.mark.parametrize("text", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost", "", "127.0.0.1."])
def test_text_that_is_not_a_complete_address_is_refused_even_if_all_networks_are_allowed(text: str):
    assert not AddressPolicy(parse_networks(["0.0.0.0/0", "::/0"])).permits(text)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
)
def test_a_public_address_is_permitted_in_every_form(address: str):
    assert PUBLIC_ONLY.permits(address)


def test_an_allowed_network_is_permitted_in_every_form_and_nothing_beside_it():
    policy = AddressPolicy(parse_networks(["127.0.0.0/8", "fd00::/8", "fe80::/10"]))

    assert all(map(policy.permits, ["127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00::1", "fe80::1%eth0"]))
    assert not any(map(policy.permits, ["10.0.0.1", "::1", "fc00::1"]))


def test_allowing_all_of_ipv6_does_not_allow_the_ipv4_addresses_inside_it():
    assert not AddressPolicy(parse_networks(["::/0"])).permits("::ffff:127.0.0.1")


def test_networks_are_read_from_cidrs_and_single_addresses():
    networks = parse_networks([" 10.0.0.0/8 ", "127.0.0.1", "fd00::/8"])

    assert networks == (IPv4Network("10.0.0.0/8"), IPv4Network("127.0.0.1/32"), IPv6Network("fd00::/8"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("10.0.0.1/8", "did you mean 10.0.0.0/8"),
        ("intranet", "write a CIDR"),
        ("10.0.0.0/33", "write a CIDR"),
        ("", "write a CIDR"),
    ],
)
def test_a_wrong_network_is_named_with_a_way_out(text: str, hint: str):
    with pytest.raises(ValueError, match=hint):
        parse_networks(["10.0.0.0/8", text])
