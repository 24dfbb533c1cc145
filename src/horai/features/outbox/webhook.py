"""The webhook sender: CloudEvents over HTTP, signed according to Standard Webhooks with the tenant's secrets."""

import asyncio
from datetime import timedelta

import aiohttp
from yarl import URL

import horai
from horai.core.addresses import AddressPolicy
from horai.core.callbacks import header_text, sign
from horai.engine.executors.dial import AddressRefused, CallbackSessions, calling_tenant
from horai.features.outbox.rules import BATCHED, STRUCTURED, batched, structured
from horai.features.outbox.sender import Parcel, ParcelResult, SendFailure

TIMEOUT = timedelta(seconds=10)
GONE = 410


class WebhookSender:
    """Sends events to URLs. Addresses are checked as those of callbacks are; redirects are not followed."""

    def __init__(self, policy: AddressPolicy, timeout: timedelta = TIMEOUT) -> None:
        self._sessions = CallbackSessions(policy)
        self._timeout = timeout

    async def close(self) -> None:
        """Close every session."""
        await self._sessions.close()

    async def send(self, parcel: Parcel) -> ParcelResult:
        """Send requests of `batch` events, one after the other: the first failure ends it."""
        if not parcel.secrets:
            return ParcelResult(0, SendFailure("the tenant has no signing secret that can be read"))
        for begun in range(0, len(parcel.events), parcel.batch):
            some = parcel.events[begun : begun + parcel.batch]
            if parcel.batch == 1:
                body, media = structured(some[0], parcel.tenant), STRUCTURED
            else:
                body, media = batched(some, parcel.tenant), BATCHED
            if (failure := await self._post(parcel, some[0].event_id, body, media)) is not None:
                return ParcelResult(begun, failure)
        return ParcelResult(len(parcel.events))

    async def _post(self, parcel: Parcel, message_id: str, body: bytes, media: str) -> SendFailure | None:
        url = URL(parcel.place["url"], encoded=True)
        calling_tenant.set(parcel.tenant)
        try:
            async with (
                asyncio.timeout(self._timeout.total_seconds()),
                self._sessions.session(parcel.reach) as session,
                session.post(
                    url, data=body, headers=_headers(parcel, message_id, body, media), allow_redirects=False
                ) as answer,
            ):
                status = answer.status
        except TimeoutError:
            return SendFailure(f"{url.raw_authority} did not answer within {self._timeout.total_seconds():g} s")
        except AddressRefused:
            return SendFailure(
                f"the address of {url.raw_authority} is private; an operator may allow it: --callback-allow"
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return SendFailure(f"{url.raw_authority}: {type(error).__name__}")
        if 200 <= status < 300:
            return None
        return SendFailure(f"{url.raw_authority} answered HTTP {status}", is_final=status == GONE)


def _headers(parcel: Parcel, message_id: str, body: bytes, media: str) -> dict[str, str]:
    timestamp = str(int(parcel.at.timestamp()))
    return {
        **parcel.place.get("headers", {}),
        "Content-Type": media,
        "User-Agent": f"Horai/{horai.__version__}",
        "Accept-Encoding": "identity",
        "Horai-Sink": header_text(parcel.sink),
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(sign(secret, message_id, timestamp, body) for secret in parcel.secrets),
    }
