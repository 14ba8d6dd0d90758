"""The calls `up` and `status` make to the service they started: jobs in, progress and ratios out."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import httpx

Item = Mapping[str, Any]


class ServiceApi:
    """One service. A call that gets no answer raises httpx.TransportError; `up` simply asks again."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=httpx.Timeout(10, connect=2), trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def is_ready(self) -> bool:
        """Whether the service answers and its database is in shape."""
        try:
            return self._http.get("/readyz").is_success
        except httpx.TransportError:
            return False

    def add_job(self, commit: Item, *, suite: str, priority: int, timeout_s: float) -> Item:
        """Ask for a measurement; what is queued or measured already is returned as it stands."""
        body = {
            "project": "pullback",
            "commit": commit,
            "suite": suite,
            "priority": priority,
            "requires": {},
            "timeout_s": timeout_s,
        }
        return self._answer(self._http.post("/api/v1/jobs", json=body))

    def status(self) -> Item:
        """The service's word on itself."""
        return self._answer(self._http.get("/status"))

    def job(self, job_id: str) -> Item:
        """One job with its state and progress."""
        return self._answer(self._http.get(f"/api/v1/jobs/{job_id}"))

    def report(self, report_id: str) -> Item:
        """The document of a report, as it was uploaded."""
        document: Item = self._answer(self._http.get(f"/api/v1/reports/{report_id}"))["document"]
        return document

    def list(self, resource: str, **query: str | int) -> Sequence[Item]:
        """The first page of a list."""
        items: Sequence[Item] = self._answer(self._http.get(f"/api/v1/{resource}", params=query))["items"]
        return items

    def _answer(self, response: httpx.Response) -> Item:
        if response.is_server_error:
            raise httpx.RemoteProtocolError(f"the service answered {response.status_code}")
        response.raise_for_status()
        answer: Item = response.json()
        return answer
