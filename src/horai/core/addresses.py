"""The addresses that a callback may dial: public ones, those that the operator allows, and those of the tenant.

A tenant supplies the URL of a target, but the operator's network dials it. Without this check, a job could read the
metadata service of a cloud or any port of the machine. The check covers the address about to be dialled, never the
name. If an IPv6 form carries an IPv4 address, the check covers the IPv4 address.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class TenantReach:
    """The addresses that the targets of one tenant may have.

    `networks` None: public addresses and those that the operator allows. While a server has no keys, they include the
    loopback addresses that the operator allows. Once it has keys, a loopback address is one of the server itself for
    every tenant, and only the networks of the tenant can allow it.
    """

    networks: tuple[str, ...] | None = None
    is_keyed: bool = False


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Public addresses, plus the networks in `allow`.

    `only`: no address outside these networks, of which one without public addresses also allows its own addresses.
    `has_keys`: no loopback address because of `allow`.
    """

    allow: tuple[Network, ...] = ()
    only: tuple[Network, ...] | None = None
    has_keys: bool = False

    def within(self, reach: TenantReach) -> "AddressPolicy":
        """Return the policy for the calls of a tenant."""
        only = None if reach.networks is None else parse_networks(reach.networks)
        return AddressPolicy(self.allow, only, reach.is_keyed)

    def permits(self, address: str | Address) -> bool:
        """Return whether a callback may dial `address`.

        Text that is not an address (a name, `127.1`, `2130706433`) is refused.
        """
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return all(self._permits(inner) for inner in unwrap(parsed))

    def _permits(self, address: Address) -> bool:
        is_open = is_public(address) or self._is_allowed(address)
        if self.only is None:
            return is_open
        return any(address in network and (is_open or is_special(network)) for network in self.only)

    def _is_allowed(self, address: Address) -> bool:
        if self.has_keys and address.is_loopback:
            return False
        return any(address in network for network in self.allow)


def why_refused(tenant: str, reach: TenantReach, is_loopback: bool) -> str:
    """Return why the address of a host was refused and who can allow it, to follow the name of the host."""
    by_platform = f"the platform can allow it: horai tenants set {tenant} --callback-network"
    if reach.networks is not None:
        return f"is not in the callback networks of the tenant, so it was not called; {by_platform} CIDR"
    if reach.is_keyed and is_loopback:
        return (
            "is at a loopback address, which a server with keys calls only for tenants that may, so it was not called; "
            f"{by_platform} 127.0.0.0/8"
        )
    hint = "an operator can allow its network with --callback-allow CIDR (HORAI_CALLBACK_ALLOW)"
    return f"is not at a public address, so it was not called; {hint}"


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse one CIDR or address per text. Raise ValueError with the wrong text and the reason."""
    return tuple(_parse_network(text.strip()) for text in texts)


def is_public(address: Address) -> bool:
    """Return whether the whole Internet reaches the same machine at `address`. Call `unwrap` first."""
    if address.is_multicast or address.is_reserved or address.is_unspecified or not address.is_global:
        return False
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return not any(address in network for network in _OVERLOOKED)


def is_special(network: Network) -> bool:
    """Return whether a network has no public address, such as 10.0.0.0/8; a larger one, such as 0.0.0.0/0, has."""
    least = 8 if isinstance(network, IPv4Network) else 7
    ends = (network.network_address, network.broadcast_address)
    return network.prefixlen >= least and not any(is_public(end) for end in ends)


def is_loopback(address: str) -> bool:
    """Return whether `address` is one of the machine itself, in any IPv6 form."""
    return any(inner.is_loopback for inner in unwrap(ip_address(address)))


def unwrap(address: Address) -> tuple[Address, ...]:
    """Return the IPv4 addresses that an IPv6 form carries (two for Teredo), or the address without its scope id."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    bare = IPv6Address(int(address))
    if bare in _NAT64 or (bare in _IPV4_COMPATIBLE and int(bare) > 1):
        return (IPv4Address(int(bare) & 0xFFFF_FFFF),)
    return (bare,)


def _parse_network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        pass
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not a network: write a CIDR such as 10.0.0.0/8 or fd00::/8") from None
    raise ValueError(f"{text!r} has bits set outside its mask: did you mean {network}?")


_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""Other IPv6 ranges are not routed, although `is_global` is true for some (fec0::/10). The NAT64 prefix for local use,
64:ff9b:1::/48, lies outside and is not unwrapped: the position of the IPv4 address in it depends on the site.
"""

_IPV4_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")

_OVERLOOKED = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments; 192.0.0.192 is a cloud's metadata service
    IPv4Network("192.88.99.0/24"),  # 6to4 relays, deprecated
    IPv4Network("168.63.129.16/32"),  # the host behind an Azure machine: public by number only
    IPv6Network("2001::/23"),  # protocol assignments
    IPv6Network("3fff::/20"),  # documentation
)
"""Special by the IANA registries or by use, although `is_global` is true in some or all supported Python versions."""
