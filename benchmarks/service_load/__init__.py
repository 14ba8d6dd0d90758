"""What the service takes and how fast it answers at ten million points: `python -m benchmarks.service_load --help`."""
