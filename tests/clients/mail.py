"""aiosmtpd as a real mail server: takes mails, or fails as the last line of standard input says.

Prints its port, and then each mail that it has taken as one line of JSON.
"""

import asyncio
import email
import email.policy
import json
import sys
import threading

from aiosmtpd.smtp import SMTP


class Box:
    """Takes mails. `mode` is take, refuse (a permanent error), defer (a temporary one), stall or cut."""

    mode = "take"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.mode == "refuse":
            return "550 5.1.1 no such mailbox\r"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mode = self.mode
        if mode == "defer":
            return "451 4.3.0 try again later"
        if mode == "stall":
            await asyncio.sleep(3600)
        if mode == "cut":
            server.transport.abort()
            return "421 gone"
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        shown = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": [[name, str(value)] for name, value in mail.items()],
            "body": mail.get_content(),
        }
        print(json.dumps(shown), flush=True)
        return "250 OK"


async def main():
    box = Box()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(box, hostname="mail.example.net", loop=loop), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()

    def read():
        for line in sys.stdin:
            box.mode = line.strip()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=read, daemon=True).start()
    await ended.wait()


asyncio.run(main())
