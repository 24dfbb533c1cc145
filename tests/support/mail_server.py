"""A real SMTP server for tests: it keeps every mail, and asks for TLS or a password if it is told to."""

import asyncio
import ssl
import warnings
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, Self, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class MailServer:
    """A server on 127.0.0.1, while it is entered."""

    def __init__(
        self, password: str | None = None, tls: ssl.SSLContext | None = None, *, implicit: bool = False
    ) -> None:
        self.mails: list[EmailMessage] = []
        self.receivers: list[list[str]] = []
        self.refused: set[str] = set()
        self.port = 0
        self._password = password
        self._tls = tls
        self._is_implicit = implicit
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        context = self._tls if self._is_implicit else None
        self._server = await loop.create_server(self._protocol, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    def _protocol(self) -> SMTP:
        starts_tls = self._tls is not None and not self._is_implicit
        with warnings.catch_warnings():  # it takes TLS from the first byte on for none
            warnings.simplefilter("ignore")
            return SMTP(
                self,
                hostname="mail.test",
                tls_context=self._tls if starts_tls else None,
                require_starttls=starts_tls,
                auth_required=self._password is not None,
                auth_require_tls=starts_tls,
                authenticator=self._check if self._password is not None else None,
            )

    def _check(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        is_right = isinstance(given, LoginPassword) and given.password == (self._password or "").encode()
        return AuthResult(success=is_right, handled=False)

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        content = cast("bytes", envelope.content)
        self.mails.append(message_from_bytes(content, policy=default))
        self.receivers.append(list(envelope.rcpt_tos))
        return "250 OK"
