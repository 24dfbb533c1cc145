"""The addresses that the targets of a tenant may have."""

import pytest

from horai.core.addresses import AddressPolicy, TenantReach, is_special, parse_networks, why_refused

OPERATOR = AddressPolicy(parse_networks(["127.0.0.0/8", "::1/128", "10.0.0.0/8"]))
PUBLIC, METADATA = "93.184.216.34", "169.254.169.254"


@pytest.mark.parametrize(
    ("networks", "is_keyed", "permitted", "refused"),
    [
        (None, False, (PUBLIC, "127.0.0.1", "::1", "10.1.2.3"), (METADATA, "192.168.0.1")),
        (None, True, (PUBLIC, "10.1.2.3"), ("127.0.0.1", "::1", "::ffff:127.0.0.1", METADATA)),
        (("127.0.0.0/8",), True, ("127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1"), (PUBLIC, "::1", "10.1.2.3", METADATA)),
        (("192.168.7.0/24",), True, ("192.168.7.9",), ("192.168.8.9", PUBLIC, "127.0.0.1")),
        (
            ("0.0.0.0/0", "::/0"),
            True,
            (PUBLIC, "10.1.2.3", "2606:4700::1"),
            ("127.0.0.1", "::1", METADATA, "192.168.7.9"),
        ),
        (("0.0.0.0/0", "::/0"), False, (PUBLIC, "127.0.0.1"), (METADATA, "192.168.7.9")),
        (("93.184.0.0/16", "127.0.0.1/32"), True, (PUBLIC, "127.0.0.1"), ("8.8.8.8", "127.0.0.2")),
        ((), True, (), (PUBLIC, "127.0.0.1", "10.1.2.3")),
    ],
)
def test_C2b_a_tenant_reaches_its_networks_and_a_keyed_server_no_loopback_address_besides(
    networks: tuple[str, ...] | None, is_keyed: bool, permitted: tuple[str, ...], refused: tuple[str, ...]
):
    policy = OPERATOR.within(TenantReach(networks, is_keyed))
    assert [address for address in permitted if not policy.permits(address)] == []
    assert [address for address in refused if policy.permits(address)] == []


def test_only_a_network_without_public_addresses_allows_what_the_operator_does_not():
    for text in (
        "10.0.0.0/8",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "fd00::/8",
        "::1/128",
    ):
        assert is_special(parse_networks([text])[0]), text
    for text in ("0.0.0.0/0", "0.0.0.0/4", "172.0.0.0/8", "192.0.0.0/8", "8.8.8.8/32", "::/0", "2000::/3", "::/1"):
        assert not is_special(parse_networks([text])[0]), text


def test_a_refusal_says_who_can_allow_the_address():
    assert "--callback-allow" in why_refused("shop", TenantReach(), True)
    assert "--callback-allow" in why_refused("shop", TenantReach(None, True), False)
    assert "horai tenants set shop --callback-network 127.0.0.0/8" in why_refused("shop", TenantReach(None, True), True)
    assert "callback networks of the tenant" in why_refused("shop", TenantReach((), True), True)
