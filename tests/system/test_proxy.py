"""The service behind Debian's nginx and Caddy, as the files in deploy/ set them up: two replicas, TLS, addresses, sizes, a rolling upgrade."""

import itertools
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
from tests.system.clusters import Cluster, free_port
from tests.system.products import Product, until

import pullback_service
from pullback_service import migrations

pytestmark = pytest.mark.system

NEEDS = {
    name: pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")
    for name in ("nginx", "caddy")
}
PROXIES = [
    pytest.param("nginx", marks=NEEDS["nginx"]),
    pytest.param("caddy", marks=[NEEDS["caddy"], pytest.mark.long]),
]
DEPLOY = Path(__file__).parents[2] / "deploy"
MOST_AT_ONCE = 16
BOOTSTRAP = "the-secret-behind-the-proxy"
HOST = "pullback.example"
SAID = {"project": "demo", "commit": "3" * 40, "branch": "main", "machine": "ci"}
AROUND = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; {user}
events {{ worker_connections 1024; }}
http {{
    access_log off; types {{ }} default_type application/octet-stream;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    include {folder}/pullback.conf;
}}
"""


AROUND_CADDY = """
{{
    admin off
    http_port {plain}
    https_port {tls}
    default_bind 127.0.0.1
    local_certs
    skip_install_trust
    storage file_system {folder}/caddy
}}
"""


NEWER = """
from alembic import op

revision, down_revision, branch_labels, depends_on = "9999", "{before}", None, None


def upgrade():
    op.execute("ALTER TABLE report ADD COLUMN later text")
    op.execute("CREATE TABLE later (report_id uuid REFERENCES report, note text)")
"""


@pytest.fixture(scope="module")
def database(postgres_server):
    name = f"proxy_{uuid4().hex}"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield postgres_server.url(name)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def folder():
    made = Path(tempfile.mkdtemp(prefix="pullback-proxy-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def cluster(database, folder):
    (folder / "token").write_text(BOOTSTRAP)
    environment = {
        "DATABASE_URL": database,
        "PULLBACK_AUTH": "token",
        "PULLBACK_TOKEN_FILE": str(folder / "token"),
        "FORWARDED_ALLOW_IPS": "127.0.0.1",
        "PULLBACK_DRAIN_S": "3",
    }
    running = Cluster(Product(folder, None), environment, replicas=2, workers=0)
    yield running
    for process in running.processes:
        process.kill()


@pytest.fixture(scope="module", params=PROXIES)
def proxy(request):
    return request.param


@pytest.fixture(scope="module")
def ports(proxy, cluster, folder):
    """Those of a proxy: for http and for https."""
    plain, tls = free_port(), free_port()
    running = BEGIN[proxy](folder, plain, tls, [url.removeprefix("http://") for url in cluster.urls])
    yield plain, tls
    running.terminate()
    running.wait(30)


class StandIn(BaseHTTPRequestHandler):
    """A process of the service that is not ready, or answers piece by piece."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        pieces = [b"first", b"second"] if self.server.is_ready else []
        self.send_response(200 if self.server.is_ready else 503)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if self.path != "/readyz":
                self.server.go_on.wait(30)
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def stand_ins():
    """Two of them, the first of which is not ready."""
    with ExitStack() as running:
        yield [begin_stand_in(running, is_ready) for is_ready in (False, True)]


def begin_stand_in(running, is_ready, port=0):
    server = running.enter_context(ThreadingHTTPServer(("127.0.0.1", port), StandIn))
    server.is_ready, server.go_on, server.daemon_threads = is_ready, threading.Event(), True
    threading.Thread(target=server.serve_forever).start()
    running.callback(server.shutdown)
    running.callback(server.go_on.set)
    return server


def begin_nginx(folder, plain, tls, replicas):
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", certificate,
         "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"],
        check=True, capture_output=True,
    )  # fmt: skip
    written = guide(
        "nginx.conf",
        {
            "# server 127.0.0.1:8001": f"server {replicas[1]}",
            "server 127.0.0.1:8000": f"server {replicas[0]}",
            "listen 80;": f"listen 127.0.0.1:{plain};",
            "listen 443 ssl": f"listen 127.0.0.1:{tls} ssl",
            "/etc/ssl/pullback.example.pem": str(certificate),
            "/etc/ssl/private/pullback.example.key": str(key),
        },
    )
    (folder / "pullback.conf").write_text(written)
    is_root = Path("/proc/self").stat().st_uid == 0
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user="user root;" if is_root else ""))
    running = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"])
    until(lambda: (folder / "nginx.pid").exists() and (folder / "nginx.pid").read_text(), 30, "nginx to begin")
    return running


def begin_caddy(folder, plain, tls, replicas):
    written = guide("Caddyfile", {"127.0.0.1:8000 127.0.0.1:8001": " ".join(replicas)})
    (folder / "Caddyfile").write_text(AROUND_CADDY.format(folder=folder, plain=plain, tls=tls) + written)
    with (folder / "caddy.log").open("wb") as log:
        running = subprocess.Popen(
            ["caddy", "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"],
            stderr=log,
            env={**os.environ, "HOME": str(folder)},
        )
    authority = folder / "caddy/pki/authorities/local/root.crt"
    until(authority.exists, 30, "Caddy to make its authority")
    shutil.copy(authority, folder / "certificate.pem")
    trusted = ssl.create_default_context(cafile=authority)

    def is_ready():
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", tls)) as one,
            trusted.wrap_socket(one, server_hostname=HOST),
        ):
            return True

    until(is_ready, 30, "Caddy to have a certificate")
    return running


BEGIN = {"nginx": begin_nginx, "caddy": begin_caddy}


def guide(name, replaced):
    """A file of the guide, with what differs here in the place of what is written there."""
    text = (DEPLOY / name).read_text()
    for written, here in replaced.items():
        assert written in text, written
        text = text.replace(written, here)
    return text


@pytest.fixture
def client(ports, folder):
    """A client outside, at an address of its own, that knows the certificate and has every right."""

    trusted = ssl.create_default_context(cafile=folder / "certificate.pem")
    transport = httpx.HTTPTransport(verify=trusted, local_address="127.0.0.2")
    with httpx.Client(
        transport=transport,
        base_url=f"https://127.0.0.1:{ports[1]}",
        headers={"Host": HOST, "Authorization": f"Bearer {BOOTSTRAP}"},
        timeout=60,
    ) as found:
        yield Named(found)


class Named:
    """Requests to the name in the certificate, which no name server of a test knows."""

    def __init__(self, client):
        self._client = client

    def __call__(self, method, address, **parts):
        return self._client.request(method, address, extensions={"sni_hostname": HOST}, **parts)


def upload(client, number, **headers):
    body = json.dumps(
        {"results": [{"command": f"c{number}", "times": [1.0, 1.1], "mean": 1.0, "user": 0.5, "system": 0.1}]}
    )
    headers = {"Idempotency-Key": f"upload {number}", **headers}
    return client("POST", "/api/v1/reports", params=SAID, content=body, headers=headers)


def test_plain_http_is_sent_to_https_and_browsers_are_told_to_stay_there(ports, client):
    answer = httpx.get(f"http://127.0.0.1:{ports[0]}/projects?a=b", headers={"Host": HOST}, trust_env=False)
    assert (answer.status_code, answer.headers["location"]) == (308, f"https://{HOST}/projects?a=b")
    answer = client("GET", "/healthz")
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    assert client("GET", "/metrics").status_code == 403


def test_the_service_knows_who_asks_and_by_which_name(client, ports):
    assert upload(client, ports, **{"X-Forwarded-For": "9.9.9.9"}).status_code == 201
    line = client("GET", "/api/v1/audit").json()["items"][0]
    assert line["address"] == "127.0.0.2"
    assert f"https://{HOST}/" in client("GET", "/projects/demo/feed.atom").text
    token = client("POST", "/api/v1/tokens", json={"name": f"person {ports}", "scopes": ["read"]}).json()["token"]
    signed_in = client("POST", "/login", data={"token": token}, headers={"Origin": f"https://{HOST}"})
    assert signed_in.status_code == 303, signed_in.text
    assert "Secure" in signed_in.headers["set-cookie"]


def test_large_bodies_and_long_addresses_are_answered_by_the_service(client):
    large = client("POST", "/api/v1/reports", params=SAID, content=b"[" + b"1," * 20_000_000 + b"1]")
    assert (large.status_code, large.headers["content-type"]) == (413, "application/problem+json")
    too_large = client("POST", "/api/v1/reports", params=SAID, content=b" " * (64 * 1024 * 1024 + 1))
    assert (too_large.status_code, "PULLBACK_MAX_REPORT_BYTES" in too_large.json()["detail"]) == (413, True)
    assert client("GET", f"/projects?q={'x' * 20_000}").headers["content-type"].startswith("text/html")


@pytest.mark.long
def test_an_upload_of_64_mib_is_stored(client, proxy):
    body = json.dumps({"results": [{"command": "long", "times": [1.0, 1.1], "mean": 1.0, "user": 0.5, "system": 0.1}]})
    content = body.encode() + b" " * (64 * 1024 * 1024 - len(body))
    stored = client("POST", "/api/v1/reports", params={**SAID, "branch": proxy}, content=content)
    assert stored.status_code == 201, stored.text
    assert client("GET", f"{stored.json()['url']}/body").content == content


def test_who_waits_for_a_log_has_it_as_soon_as_it_is_written(client):
    wanted = {"project": "demo", "commit": {"sha": "4" * 40}, "suite": "quick"}
    job = client("POST", "/api/v1/jobs", json=wanted).json()["id"]
    machine = {"fingerprint": "f", "name": "m"}
    agent = client("POST", "/api/v1/agents/enroll", json={"name": "a", "machine": machine}).json()["agent_id"]
    claim = client("POST", f"/api/v1/agents/{agent}/claim", json={"wait_s": 30}).json()
    assert claim["job"]["id"] == job
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client, "GET", f"/api/v1/jobs/{job}/log", params={"wait_s": 30})
        lease = {"Pullback-Lease": claim["lease_token"]}
        wrote = client("PUT", f"/api/v1/jobs/{job}/attempts/1/log?offset=0", content=b"a line\n", headers=lease)
        assert wrote.is_success, wrote.text
        assert "a line" in waiting.result().text
        assert waiting.result().elapsed.total_seconds() < 20


@pytest.mark.parametrize("name", PROXIES)
def test_answers_come_as_they_are_made_and_from_a_process_that_is_ready(name, stand_ins, tmp_path):
    waiting, ready = stand_ins
    waiting.is_ready = name == "nginx"  # which asks nobody
    plain, tls = free_port(), free_port()
    running = BEGIN[name](tmp_path, plain, tls, [f"127.0.0.1:{each.server_address[1]}" for each in stand_ins])
    try:
        trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        with httpx.Client(verify=trusted, headers={"Host": HOST}, timeout=30, trust_env=False) as asking:
            streaming = asking.stream("GET", f"https://127.0.0.1:{tls}/", extensions={"sni_hostname": HOST})
            with streaming as answer:
                assert answer.status_code == 200
                pieces = answer.iter_raw()
                assert next(pieces) == b"first"
                for each in (waiting, ready):
                    each.go_on.set()
                assert b"".join(pieces) == b"second"
            seen = until(
                lambda: (
                    {
                        asking.get(f"https://127.0.0.1:{tls}/readyz", extensions={"sni_hostname": HOST}).status_code
                        for _ in range(8)
                    }
                    == {200}
                ),
                30,
                "the process that is not ready to be left out",
            )
            assert seen
    finally:
        running.terminate()
        running.wait(30)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_sends_an_upload_to_the_process_that_has_just_come_back(stand_ins, tmp_path):
    first, second = stand_ins
    first.is_ready = True
    plain, tls = free_port(), free_port()
    running = begin_nginx(tmp_path, plain, tls, [f"127.0.0.1:{each.server_address[1]}" for each in stand_ins])
    try:
        trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        with httpx.Client(verify=trusted, headers={"Host": HOST}, timeout=60) as asking, ExitStack() as later:

            def send(times):
                to = f"https://127.0.0.1:{tls}/api/v1/reports"
                answers = [asking.post(to, content=b"{}", extensions={"sni_hostname": HOST}) for _ in range(times)]
                return {answer.status_code for answer in answers}

            first.shutdown()
            first.server_close()
            assert send(4) == {201}
            begin_stand_in(later, True, first.server_address[1])
            second.shutdown()
            second.server_close()
            assert send(4) == {201}
    finally:
        running.terminate()
        running.wait(30)


@pytest.fixture(scope="module")
def newer_release(folder):
    """A folder with the service as a release has it that adds a column, a table and a migration, for PYTHONPATH."""
    package = folder / "newer" / "pullback_service"
    shutil.copytree(Path(pullback_service.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    if not (package / "_migrations").exists():  # in a wheel they are there
        shutil.copytree(migrations.folder(), package / "_migrations")
    (package / "_migrations" / "versions" / "9999_newer.py").write_text(NEWER.format(before=migrations.head()))
    return package.parent


@pytest.mark.long
@pytest.mark.parametrize(
    ("proxy", "a_second"),
    [
        pytest.param("nginx", 20, marks=NEEDS["nginx"]),
        pytest.param("nginx", 100, marks=NEEDS["nginx"]),
        pytest.param("caddy", 20, marks=NEEDS["caddy"]),
        pytest.param("caddy", 100, marks=NEEDS["caddy"]),
    ],
    indirect=["proxy"],
)
def test_no_upload_is_lost_or_refused_while_replicas_are_upgraded_and_taken_back(
    client, ports, proxy, cluster, database, newer_release, a_second
):
    done, began, sent = threading.Event(), time.monotonic(), []
    numbers = itertools.count()

    def send():
        for number in numbers:  # next() of one counter by many threads gives each number once
            done.wait(max(began + number / a_second - time.monotonic(), 0))
            if done.is_set():
                return
            key = f"{ports} {number}"
            sent.append((key, upload(client, key).status_code))

    def replace_all(*, release=None):
        variables = {} if release is None else {"PYTHONPATH": str(release)}
        for replica, url in zip(cluster.replicas, cluster.urls, strict=True):
            before = len(sent)
            until(lambda before=before: len(sent) > before + 20, 60, "uploads to go on")
            assert replica.stop() in {0, -signal.SIGTERM}
            replica.restart(**variables)
            cluster.wait_until_ready(url)

    def upgrade(release):
        log = cluster.product.home / "newer.log"
        environment = {"DATABASE_URL": database, "PYTHONPATH": str(release)}
        assert cluster.product.start("db", "upgrade", log=log, environment=environment).wait(120) == 0, log.read_text()

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        uploading = [pool.submit(send) for _ in range(MOST_AT_ONCE)]
        try:
            upgrade(newer_release)
            assert migrations.revisions(database).current == "9999"
            replace_all(release=newer_release)
            replace_all()  # the database stays as the newer release has it
            if a_second == 100 and "PYTEST_XDIST_WORKER" not in os.environ:  # to be reached, where no other tests run
                # Processes that start take a part of two processors: what waited meanwhile is sent afterwards.
                until(lambda: len(sent) >= a_second * (time.monotonic() - began) - MOST_AT_ONCE, 20, "the asked rate")
        finally:
            done.set()
            took_s = time.monotonic() - began
    for one in uploading:
        one.result()
    print(f"{len(sent)} uploads in {took_s:.1f} s")  # noqa: T201 - to be read beside the figure
    statuses = Counter(status for _, status in sent)
    assert statuses.keys() <= {200, 201}, statuses  # 200: it was stored before its connection ended
    with psycopg.connect(database) as connection:
        keys = {key for (key,) in connection.execute("SELECT idempotency_key FROM report")}
        # For the other rate.
        connection.execute("ALTER TABLE report DROP later; DROP TABLE later")
        connection.execute("UPDATE alembic_version SET version_num = %s", [migrations.head()])
    assert {f"upload {key}" for key, _ in sent} <= keys


def test_the_files_name_the_limit_of_the_service():
    assert re.findall(r"client_max_body_size (\d+)m;", (DEPLOY / "nginx.conf").read_text()) == ["65"]
    assert re.findall(r"max_size (\d+)MiB", (DEPLOY / "Caddyfile").read_text()) == ["65"]
