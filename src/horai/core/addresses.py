"""The addresses that a callback may dial: public ones, and those that the operator allows.

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
class AddressPolicy:
    """Public addresses, plus the networks in `allow`."""

    allow: tuple[Network, ...] = ()

    def permits(self, address: str | Address) -> bool:
        """Return whether a callback may dial `address`.

        Text that is not an address (a name, `127.1`, `2130706433`) is refused.
        """
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return all(self._is_allowed(inner) or is_public(inner) for inner in unwrap(parsed))

    def _is_allowed(self, address: Address) -> bool:
        return any(address in network for network in self.allow)


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
