"""Throughput and response times of the service at ten million points: `python -m benchmarks.service_load --help`."""
