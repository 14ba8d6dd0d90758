import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
import stamina

from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.errors import TransientError
from pullback_runners.agent.spool import Delivery, Spool
from pullback_runners.agent.upload import UploadLoop


@pytest.fixture(autouse=True)
def _no_waiting_between_tries():
    stamina.set_testing(True, attempts=50)
    yield
    stamina.set_testing(False)


def _delivery(key, fallback_path=None):
    return Delivery(key, "/attempt/report", {"id": key}, "lease", fallback_path)


def test_a_delivery_is_tried_until_the_service_takes_it(tmp_path):
    statuses = iter([503, 503, 201])
    spool = Spool(tmp_path)
    transport = httpx.MockTransport(lambda _: httpx.Response(next(statuses), json={}))
    with ServiceClient("http://service.test", transport=transport) as client:
        uploads = UploadLoop(client, spool)
        uploads.start()
        path = uploads.put(_delivery("k"))
        assert uploads.wait_for(path, 10)
    assert next(statuses, None) is None
    assert [path.name for path in (tmp_path / "sent").iterdir()] == [path.name]


def test_what_an_earlier_agent_left_is_sent_first(tmp_path):
    Spool(tmp_path).put(_delivery("first"))
    seen, both = [], threading.Event()

    def answer(request):
        seen.append(request.headers["Idempotency-Key"])
        if len(seen) == 2:
            both.set()
        return httpx.Response(201, json={})

    with ServiceClient("http://service.test", transport=httpx.MockTransport(answer)) as client:
        uploads = UploadLoop(client, Spool(tmp_path))
        path = uploads.put(_delivery("second"))
        uploads.start()
        assert both.wait(10)
        assert uploads.wait_for(path, 10)
    assert seen == ["first", "second"]


def test_a_refused_delivery_makes_room_for_the_next(tmp_path):
    def answer(request):
        refused = request.headers["Idempotency-Key"] == "bad"
        return httpx.Response(422, json={"detail": "no"}) if refused else httpx.Response(201, json={})

    spool = Spool(tmp_path)
    with ServiceClient("http://service.test", transport=httpx.MockTransport(answer)) as client:
        uploads = UploadLoop(client, spool)
        bad, good = uploads.put(_delivery("bad")), uploads.put(_delivery("good"))
        uploads.start()
        assert uploads.wait_for(good, 10)
    assert [path.name for path in (tmp_path / "sent").iterdir()] == [good.name]
    assert (tmp_path / "refused" / bad.name).exists()


def test_a_report_that_the_service_refuses_fails_its_job_with_the_reason(tmp_path):
    sent = []

    def answer(request):
        sent.append((request.url.path, json.loads(request.content)))
        refused = request.url.path == "/attempt/report"
        return httpx.Response(422, json={"detail": "a name is too long"}) if refused else httpx.Response(200, json={})

    with ServiceClient("http://service.test", transport=httpx.MockTransport(answer)) as client:
        uploads = UploadLoop(client, Spool(tmp_path))
        uploads.start()
        report = uploads.put(_delivery("k", "/api/v1/reports"))
        assert uploads.wait_for(report, 10)
    assert [path for path, _ in sent] == ["/attempt/report", "/attempt/fail"]
    failure = sent[1][1]
    assert (failure["lease_token"], failure["kind"], failure["retryable"]) == ("lease", "workload", False)
    assert failure["message"].startswith("The service refused the report of this job: ")
    assert "a name is too long" in failure["message"]
    assert [path.name for path in (tmp_path / "refused").glob("*.json")] == [report.name]
    assert len(list((tmp_path / "sent").iterdir())) == 1


def test_what_cannot_be_put_away_ends_no_sending_and_is_sent_again(tmp_path):
    spool, tried, sent = Spool(tmp_path), threading.Event(), tmp_path / "sent"
    put_away = spool.mark_sent

    def noted(path):
        try:
            put_away(path)
        finally:
            tried.set()

    spool.mark_sent = noted
    sent.rmdir()
    sent.touch()
    transport = httpx.MockTransport(lambda _: httpx.Response(201, json={}))
    with ServiceClient("http://service.test", transport=transport) as client:
        uploads = UploadLoop(client, spool)
        uploads.start()
        first = uploads.put(_delivery("first"))
        assert tried.wait(10)
        sent.unlink()
        sent.mkdir()
        second = uploads.put(_delivery("second"))
        assert uploads.wait_for(second, 10)
    assert sorted(path.name for path in sent.iterdir()) == [first.name, second.name]


def test_a_report_of_an_attempt_nobody_knows_goes_to_the_reports(tmp_path):
    paths = []

    def answer(request):
        paths.append((request.url.path, "Pullback-Lease" in request.headers))
        return httpx.Response(404 if request.url.path == "/attempt/report" else 201, json={})

    with ServiceClient("http://service.test", transport=httpx.MockTransport(answer)) as client:
        uploads = UploadLoop(client, Spool(tmp_path))
        uploads.start()
        assert uploads.wait_for(uploads.put(_delivery("k", "/api/v1/reports")), 10)
    assert paths == [("/attempt/report", True), ("/api/v1/reports", False)]


class _Takes(BaseHTTPRequestHandler):
    """A service that takes what it is sent."""

    def do_POST(self):
        self.server.keys.append(self.headers["Idempotency-Key"])
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def test_without_names_a_delivery_stays_in_the_spool_and_is_sent_when_there_are_names_again(tmp_path, monkeypatch):
    known, lookup, tried = threading.Event(), socket.getaddrinfo, threading.Event()

    def look_up(host, *more, **named):
        if host not in {"service.test", b"service.test"}:
            return lookup(host, *more, **named)
        tried.set()
        if not known.is_set():
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return lookup("127.0.0.1", *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setenv("NO_PROXY", "*")
    stamina.set_testing(True, attempts=1)
    with HTTPServer(("127.0.0.1", 0), _Takes) as server:
        server.keys = []
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        with ServiceClient(f"http://service.test:{server.server_address[1]}") as client:
            with pytest.raises(
                TransientError, match=r"^http://service\.test:\d+ does not answer .*name resolution\S*$"
            ):
                client.claim(1, labels={}, wait_s=0)
            tried.clear()
            stamina.set_testing(True, attempts=100_000)  # without pauses, until there are names again
            uploads = UploadLoop(client, Spool(tmp_path))
            uploads.start()
            path = uploads.put(_delivery("k"))
            assert tried.wait(10)
            assert path.exists()
            assert server.keys == []
            known.set()
            assert uploads.wait_for(path, 10)
        assert server.keys == ["k"]
        server.shutdown()
        serving.join()
