import os
import subprocess
import sys
from hashlib import sha256

import pytest

from pullback_runners.agent import job_folder
from pullback_runners.agent.claims import Lease
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.job_folder import JobFolder


@pytest.fixture
def folder(tmp_path):
    lease = Lease(job_id="7", attempt=1, token="t", heartbeat_s=15.0)  # noqa: S106 - of nobody
    return JobFolder.create(tmp_path / "jobs", lease, "key")


def test_the_lease_is_read_by_its_owner_alone(folder):
    assert (folder.path / "attempt.json").stat().st_mode & 0o077 == 0
    assert folder.remembered()[1] == "key"


def test_what_a_job_wrote_is_read_where_it_is_a_file_of_its_own(folder, tmp_path):
    assert folder.outcome() is None
    folder.report.write_text('{"id": "k"}')
    assert folder.outcome() is None  # nobody has told of it
    folder.mark_report(sha256(b'{"id": "k"}').hexdigest())
    assert folder.outcome() == {"id": "k"}


def test_a_report_that_a_process_of_the_job_has_replaced_is_not_sent(folder):
    folder.report.write_text('{"id": "k", "time": 1e-9}')
    folder.mark_report(sha256(b'{"id": "k"}').hexdigest())
    with pytest.raises(
        JobFailedError, match=r"^report\.json of the job does not have the digest that the measuring process reported$"
    ):
        folder.outcome()


def test_a_reason_that_is_nested_without_end_is_the_jobs_failure(folder):
    folder.failure.write_text("[" * 100_000)
    with pytest.raises(JobFailedError, match=r"^failure\.json of the job is no JSON$"):
        folder.outcome()


def _link(path, secret):
    path.symlink_to(secret)


def _second_name(path, secret):
    os.link(secret, path)


def _pipe(path, secret):
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_link, _second_name, _pipe, lambda path, _: path.mkdir()])
def test_what_a_job_left_in_the_place_of_its_report_is_not_read(folder, tmp_path, make):
    (tmp_path / "secret").write_text('{"token": "t"}')
    make(folder.report, tmp_path / "secret")
    folder.mark_report(sha256(b'{"token": "t"}').hexdigest())
    with pytest.raises(JobFailedError, match=r"^report\.json of the job ") as caught:
        folder.outcome()
    assert (caught.value.kind, caught.value.retryable) == ("workload", False)


@pytest.mark.parametrize("text", ["[1]", "{", "\xff" * 101, "{" + " " * 100 + "}"])
def test_a_report_that_is_none_or_too_large_is_the_jobs_failure(folder, monkeypatch, text):
    monkeypatch.setattr(job_folder, "LARGEST_REPORT_BYTES", 100)
    folder.report.write_text(text, encoding="latin-1")
    folder.mark_report(sha256(text.encode("latin-1")).hexdigest())
    with pytest.raises(JobFailedError, match=r"no JSON|more than 0 MiB of report; measure fewer cases"):
        folder.outcome()


def test_the_process_that_measures_a_job_does_not_wait_for_the_client_of_the_service():
    program = (
        "import sys, pullback_runners.agent.measurer; assert not {'httpx', 'pydantic', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
