"""A small double of GitHub's API, which keeps what it is told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count


class GitHubDouble:
    """What of GitHub's API a check uses; `account` is that of the token, None of an app."""

    def __init__(self):
        self.comments, self.check_runs, self.asked = [], [], []
        self.account, self.refused = None, False
        self._ids = count(1)
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
                double.asked.append((self.command, self.path, self.headers["Authorization"]))
                status, answer = double.answer(self.command, self.path, body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do  # noqa: N815 - as http.server looks for them

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, method, path, body):
        where, _, query = path.partition("?")
        if where == "/user":
            return (200, {"login": self.account}) if self.account else (403, {"message": "not by integration"})
        if self.refused:
            return 403, {"message": "Resource not accessible by integration"}
        if (method, where) == ("POST", "/repos/o/r/check-runs"):
            self.check_runs.append(body)
            return 201, body
        assert where.startswith("/repos/o/r/issues/"), path
        return self._comment(method, where, query, body)

    def _comment(self, method, where, query, body):
        if method == "GET":
            page = int(query.partition("&page=")[2])
            return 200, self.comments[(page - 1) * 100 : page * 100]
        if method == "PATCH":
            (comment,) = [each for each in self.comments if where.endswith(f"/comments/{each['id']}")]
            comment.update(body)
            return 200, comment
        assert where == "/repos/o/r/issues/7/comments"
        user = {"login": self.account or "github-actions[bot]", "type": "User" if self.account else "Bot"}
        self.comments.append({"id": next(self._ids), "user": user, **body})
        return 201, self.comments[-1]

    def close(self):
        """Answer nobody any more."""
        self.server.shutdown()
        self.server.server_close()
