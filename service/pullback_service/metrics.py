"""The figures one application keeps for Prometheus, in a registry of its own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

from pullback_service.request_work import RequestWork

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """Requests are counted by route and not by path, so that the number of series stays small."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "pullback_http_requests_total", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self.duration_s = Histogram(
            "pullback_http_request_duration_seconds", "Time to answer.", ["method", "route"], registry=self.registry
        )
        self.work_s = Counter(
            "pullback_work_seconds_total",
            "Work of requests: processor time, and time of the database.",
            ["route"],
            registry=self.registry,
        )
        self.refusals = Counter(
            "pullback_refusals_total", "Requests refused, by kind.", ["kind"], registry=self.registry
        )
        self.streams = Gauge("pullback_log_streams", "Requests for logs that wait for more.", registry=self.registry)
        self.jobs = Gauge("pullback_jobs", "Jobs by state.", ["state"], registry=self.registry)

    def count(self, method: str, route: str, status: int, duration_s: float, work: RequestWork) -> None:
        """A request that was answered. Anybody may send any word as a method, which must not make a series each."""
        named = method if method in METHODS else "other"
        self.requests.labels(named, route, str(status)).inc()
        self.duration_s.labels(named, route).observe(duration_s)
        self.work_s.labels(route).inc(work.seconds)
        if work.refused is not None:
            self.refusals.labels(work.refused).inc()
