"""A receiver of webhooks and a mail server, in threads of the test: real sockets, real protocols, nothing of ours."""

import email
import socketserver
import threading
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Received:
    """A request as it came."""

    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body


class Hooks(ThreadingHTTPServer):
    """Answers 200, or what `answers` has next: a status, a (status, headers, body), or a function of the handler."""

    daemon_threads = True

    def __init__(self, host="127.0.0.1"):
        super().__init__((host, 0), _Handler)
        self.received, self.answers = [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def url(self, path="/hook", host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def close(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Whoever asks may leave."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append(Received(self.path, self.headers, body))
        answer = self.server.answers.pop(0) if self.server.answers else 200
        if callable(answer):
            answer(self)
            return
        status, headers, content = answer if isinstance(answer, tuple) else (answer, {}, b"ok")
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Not on the test's standard error."""


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that keeps what it is given; recipients in `unknown` are refused."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _MailHandler)
        self.mails, self.envelopes, self.unknown, self.logins, self.refusals = [], [], set(), [], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.server_address[1]}"

    def close(self):
        self.shutdown()
        self.server_close()


class _MailHandler(socketserver.StreamRequestHandler):
    def say(self, line):
        self.wfile.write(f"{line}\r\n".encode())

    def handle(self):
        self.say("220 mail.example ESMTP")
        recipients = []
        for line in iter(self.rfile.readline, b""):
            command = line.decode("ascii", "replace").strip()
            verb = command[:4].upper()
            if verb == "EHLO":
                self.say("250-mail.example")
                self.say("250 AUTH PLAIN")
            elif verb == "AUTH":
                self.server.logins.append(command)
                self.say("235 welcome")
            elif verb == "RCPT":
                address = command.partition("<")[2].rstrip(">")
                known = address not in self.server.unknown
                if known:
                    recipients.append(address)
                self.say("250 fine" if known else "550 nobody of that name")
            elif verb == "DATA":
                if self.server.refusals:
                    self.server.refusals -= 1
                    self.say("451 later")
                    continue
                self.say("354 go on")
                content = b""
                while (piece := self.rfile.readline()) != b".\r\n":
                    content += piece.removeprefix(b".")
                self.server.mails.append(email.message_from_bytes(content, policy=default))
                self.server.envelopes.append(recipients)
                self.say("250 kept")
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 fine")
