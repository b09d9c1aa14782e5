"""A real SMTP server, which keeps what it was given, and may do something at any step of a conversation."""

import contextlib
import email
import email.policy
import socket

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP


class Box:
    """What arrived, and what happens at the steps "EHLO", "MAIL", "RCPT" and "DATA" (the whole letter is here)."""

    def __init__(self):
        self.letters, self.steps, self.answers = [], {}, {}

    def _step(self, name, default="250 OK"):
        if name in self.steps:
            self.steps[name]()
        answers = self.answers.get(name)
        return answers.pop(0) if answers else default

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        self._step("EHLO")
        session.host_name = hostname
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):
        envelope.mail_from = address
        return self._step("MAIL")

    async def handle_RCPT(self, server, session, envelope, address, options):
        envelope.rcpt_tos.append(address)
        return self._step("RCPT")

    async def handle_DATA(self, server, session, envelope):
        answer = self._step("DATA")
        if answer.startswith("250"):
            message = email.message_from_bytes(envelope.content, policy=email.policy.default)
            self.letters.append((envelope.rcpt_tos[0], message))
        return answer

    def ids(self):
        return [message["Message-ID"] for _, message in self.letters]

    def texts(self):
        return [message.get_content().replace("\r\n", "\n") for _, message in self.letters]


@contextlib.contextmanager
def mail_server():
    """Give the server's port and its box."""
    box = Box()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.factory = lambda: SMTP(box, hostname="mail.example.org", enable_SMTPUTF8=False)
    controller.start()
    try:
        yield port, box
    finally:
        controller.stop()


@contextlib.contextmanager
def silent_server():
    """Give the port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
