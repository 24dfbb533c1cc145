"""Send one message to one channel: over HTTP or by SMTP. Every error is a result.

Both go only to addresses that the tenant may call. The deadline is total. Errors name the host and the problem, never
a URL, a secret or a text of the server.
"""

import asyncio
import socket
import ssl
from dataclasses import dataclass

import aiohttp
import aiosmtplib
from yarl import URL

from horai.core.addresses import TenantReach, why_refused
from horai.engine.executors.dial import AddressRefused, CallbackSessions, calling_tenant
from horai.features.alerts.encoders import HttpRequest, Sending, email_of, fault_in, http_request

CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 10.0
ANSWER_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result of one try. `is_delivered` with an error: some receivers of a mail were refused."""

    error: str | None = None
    http_status: int | None = None
    is_delivered: bool = False


def _result(error: str | None, http_status: int | None = None) -> SendResult:
    return SendResult(error, http_status, error is None)


class ChannelSender:
    """Sends messages, with the connections of one process."""

    def __init__(self, sessions: CallbackSessions, reach: TenantReach, tenant: str) -> None:
        self._sessions = sessions
        self._reach = reach
        self._tenant = tenant

    async def send(self, kind: str, sending: Sending) -> SendResult:
        """Send a message once. Raises only CancelledError."""
        calling_tenant.set(self._tenant)
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                if kind == "email":
                    return await self._mail(sending)
                return await self._post(kind, http_request(kind, sending))
        except TimeoutError:
            return SendResult(f"no answer in full within {TOTAL_SECONDS:g} s")
        except AddressRefused as refused:
            return SendResult(f"the host {why_refused(self._tenant, self._reach, refused.is_loopback)}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return SendResult(f"the message was not sent ({_name(error)})")

    async def _post(self, kind: str, request: HttpRequest) -> SendResult:
        connect = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS)
        async with (
            self._sessions.session(self._reach) as session,
            session.post(
                URL(request.url, encoded=True),
                data=request.body,
                headers=request.headers,
                allow_redirects=False,
                timeout=connect,
            ) as response,
        ):
            body = await response.content.read(ANSWER_BYTES)
            return _result(fault_in(kind, response.status, body), response.status)

    async def _mail(self, sending: Sending) -> SendResult:
        config = sending.config
        mail = email_of(sending)
        try:
            client = aiosmtplib.SMTP(
                hostname=config["host"],
                sock=await self._connected(config["host"], config["port"]),
                use_tls=config["security"] == "tls",
                start_tls=config["security"] == "starttls",
                timeout=TOTAL_SECONDS,
            )
            async with client:
                if "username" in config:
                    await client.login(config["username"], config["password"])
                refused, _ = await client.send_message(mail, sender=config["from"], recipients=list(config["to"]))
        except aiosmtplib.SMTPResponseException as error:
            return SendResult(f"the mail server answered {error.code}")
        except aiosmtplib.SMTPException as error:
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            return SendResult(f"the mail was not sent ({_name(cause)})")
        return SendResult(f"the mail server refused {len(refused)} receivers" if refused else None, is_delivered=True)

    async def _connected(self, host: str, port: int) -> socket.socket:
        """Connect to the first permitted address of the mail server that answers."""
        loop = asyncio.get_running_loop()
        fault: OSError | None = None
        for found in await self._sessions.resolver(self._reach).resolve(host, port):
            line = socket.socket(found["family"], socket.SOCK_STREAM)
            line.setblocking(False)
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await loop.sock_connect(line, (found["host"], port))
            except (OSError, TimeoutError) as error:
                line.close()
                fault = error
            except BaseException:
                line.close()
                raise
            else:
                return line
        raise fault or OSError("no address")


def _name(error: Exception) -> str:
    """Return the kind of an error. Its own text may quote a URL."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            return "the certificate of the host is not trusted"
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return "the name of the host could not be resolved"
        case aiohttp.ClientConnectorError():
            return error.os_error.strerror or "no connection"
        case OSError() if error.strerror and not isinstance(error, aiohttp.ClientError):
            return error.strerror
        case _:
            return type(error).__name__
