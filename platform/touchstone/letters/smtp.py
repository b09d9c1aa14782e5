"""How a letter leaves: to the mail server, or as a file into var/mail.

The end of a letter is a line with a dot: a server that has not seen it may deliver nothing (RFC 5321, 4.1.1.4). So all
but the dot is written first, `hand_over` then has the last word, and what the server answers to the dot is its fate.
"""

import email.policy
import os
import re
import smtplib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext

from touchstone.letters.queueing import absolute, in_language_of, link_of, one_line, site_host
from touchstone.letters.unsubscribing import unsubscribe_path
from touchstone.models import Letter

WHOLE_SECONDS = 60.0  # of one letter: a server that sends a byte now and then runs into no time-out
FOOT = "Touchstone, {site}"


class NotTaken(Exception):
    """The letter is not with the server, for certain. Without `is_final` it may be taken another time."""

    def __init__(self, answer: str, *, is_final: bool = False, is_of_server: bool = False) -> None:
        super().__init__(answer)
        self.is_final = is_final
        self.is_of_server = is_of_server  # every other letter would meet the same now


class NoAnswer(Exception):
    """The server had the whole letter, and what it said to its end was not heard."""


def message_of(letter: Letter) -> EmailMessage:
    """Return the letter as it is sent, always with the same Message-ID, by which a second copy is recognised."""
    message = EmailMessage(policy=email.policy.SMTP)
    message["Message-ID"] = f"<{letter.pk}@{_domain(site_host())}>"
    message["Date"] = format_datetime(letter.created_at)
    message["From"] = settings.DEFAULT_FROM_EMAIL
    message["To"] = _ascii(letter.address)
    message["Subject"] = letter.title
    message["Auto-Submitted"] = "auto-generated"
    foot = FOOT.format(site=absolute("/"))
    path = unsubscribe_path(letter)
    if path:
        message["List-Unsubscribe"] = f"<{absolute(path)}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        with in_language_of(letter.user):
            switch = gettext("To get no more letters of this kind: %(address)s") % {"address": absolute(path)}
        foot = f"{foot}\n{switch}"
    parts = [part for part in (letter.text, link_of(letter), f"-- \n{foot}") if part]
    message.set_content("\n\n".join(parts) + "\n", cte="quoted-printable")
    return message


def _domain(name: str) -> str:
    return name if name.isascii() else name.encode("idna").decode()


def _ascii(address: str) -> str:
    local, _, domain = address.rpartition("@")
    return f"{local}@{_domain(domain)}"


class Server:
    """A connection to the mail server, opened with the first letter, for one after another."""

    def __init__(self) -> None:
        self._smtp: Any = None

    def send(self, letter: Letter, hand_over: Callable[[], None]) -> str:
        """Send it and return the server's answer; `hand_over` is called when only the dot is missing.

        Raises
        ------
        NotTaken
            If the server has not taken it, for certain.
        NoAnswer
            If it may have.
        """
        lines = re.sub(rb"(?m)^\.", b"..", message_of(letter).as_bytes())
        with self._time_limit():
            try:
                self._open()
                self._begin(letter.address)
                self._smtp.send(lines)
            except OSError as fault:  # every SMTPException is one
                raise NotTaken(_words(fault), is_of_server=True) from fault
            hand_over()
            try:
                self._smtp.send(b".\r\n")
                answer = self._smtp.getreply()
            except OSError as fault:
                raise NoAnswer(_words(fault)) from fault
        return self._verdict(answer)

    def close(self) -> None:
        if self._smtp is not None:
            self._smtp.close()
            self._smtp = None

    def _open(self) -> None:
        if self._smtp is not None:
            return
        context, host = ssl.create_default_context(), settings.EMAIL_HOST
        # Without a name of our own it would be looked up, for as long as a name server likes.
        given: Any = {"timeout": settings.EMAIL_TIMEOUT, "local_hostname": _domain(site_host())}
        if settings.EMAIL_USE_SSL:
            self._smtp = smtplib.SMTP_SSL(context=context, **given)
        else:
            self._smtp = smtplib.SMTP(**given)
        # Whom a certificate must name. Not given to the constructor, which would connect before it can be closed.
        self._smtp._host = host
        code, answer = self._smtp.connect(host, settings.EMAIL_PORT)
        if code != 220:
            raise smtplib.SMTPConnectError(code, answer)
        if settings.EMAIL_USE_TLS:
            self._smtp.starttls(context=context)
        if settings.EMAIL_HOST_USER and settings.EMAIL_HOST_PASSWORD:
            self._smtp.login(settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD)

    def _begin(self, address: str) -> None:
        """Say from whom and to whom, up to the server's word that the letter may come."""
        self._smtp.ehlo_or_helo_if_needed()
        self._expect(250, self._smtp.mail(parseaddr(settings.DEFAULT_FROM_EMAIL)[1]), is_of_server=True)
        self._expect(250, self._smtp.rcpt(_ascii(address)))
        self._expect(354, self._smtp.docmd("data"))

    def _expect(self, expected: int, answer: tuple[int, bytes], *, is_of_server: bool = False) -> None:
        """Go on, or raise NotTaken: a 5 is for ever, but for what the server says to all letters."""
        code, words = answer
        if code == expected or (expected == 250 and code == 251):
            return
        is_final = 500 <= code < 600 and not is_of_server
        raise NotTaken(_reply(code, words), is_final=is_final, is_of_server=is_of_server or code == 421)

    def _verdict(self, answer: tuple[int, bytes]) -> str:
        code, words = answer
        if not 200 <= code < 600:
            raise NoAnswer(_reply(code, words))
        self._expect(250, answer)
        return _reply(code, words)

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Close the connection when it lasts too long, and after whatever went wrong: the next letter begins anew."""
        watch = threading.Timer(WHOLE_SECONDS, self._cut)
        watch.daemon = True
        watch.start()
        try:
            yield
        except BaseException:
            self.close()
            raise
        finally:
            watch.cancel()

    def _cut(self) -> None:
        sock = getattr(self._smtp, "sock", None)
        if sock is not None:
            sock.shutdown(2)


class Folder:
    """Without a mail server: var/mail/<id>.eml, for whoever runs the server alone. Written twice it is one file."""

    def send(self, letter: Letter, hand_over: Callable[[], None]) -> str:
        path = letter_file(letter.pk)
        try:
            self._write(path, message_of(letter).as_bytes())
        except OSError as fault:  # no space, or a container that may not write: pages show the link meanwhile
            raise NotTaken(_words(fault), is_of_server=True) from fault
        return f"written into var/mail/{path.name}"

    def close(self) -> None:
        """Nothing is open."""

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)


def letter_file(key: Any) -> Path:
    """Return where a letter lies that no mail server took."""
    return Path(settings.VAR) / "mail" / f"{key}.eml"


def _reply(code: int, words: bytes) -> str:
    return one_line(f"{code} {words.decode(errors='replace')}")[:200]


def _words(fault: OSError) -> str:
    if isinstance(fault, smtplib.SMTPResponseException):
        error = fault.smtp_error
        return _reply(fault.smtp_code, error if isinstance(error, bytes) else str(error).encode())
    return one_line(f"{type(fault).__name__}: {fault}")[:200]
