window.BENCHMARK_DATA = {
  "lastUpdate": 1790000000000,
  "repoUrl": "https://github.com/o/r",
  "entries": {
    "Rust": [
      {
        "commit": {"id": "1111111111111111111111111111111111111111", "message": "one", "timestamp": "2026-09-01T10:00:00+02:00", "url": "https://github.com/o/r/commit/1"},
        "date": 1788000000000, "tool": "cargo",
        "benches": [{"name": "fib_10", "value": 135, "range": "± 6", "unit": "ns/iter"}]
      },
      {
        "commit": {"id": "2222222222222222222222222222222222222222", "message": "two", "timestamp": "2026-09-02T10:00:00+02:00", "url": "https://github.com/o/r/commit/2"},
        "date": 1788100000000, "tool": "cargo",
        "benches": [{"name": "fib_10", "value": 131, "range": "± 5", "unit": "ns/iter"}]
      }
    ],
    "Python": [
      {
        "commit": {"id": "2222222222222222222222222222222222222222", "message": "two", "timestamp": "2026-09-02T10:00:00+02:00", "url": "https://github.com/o/r/commit/2"},
        "date": 1788100000000, "tool": "pytest",
        "benches": [{"name": "bench.py::test_fib_10", "value": 41513.27, "range": "stddev: 0.0000012", "unit": "iter/sec", "extra": "mean: 24.1 usec\nrounds: 30815"}]
      }
    ],
    "Load": [
      {
        "commit": {"id": "2222222222222222222222222222222222222222", "message": "two", "timestamp": "2026-09-02T10:00:00+02:00", "url": "https://github.com/o/r/commit/2"},
        "date": 1788100000000, "tool": "customBiggerIsBetter",
        "benches": [{"name": "coverage", "value": 97, "unit": "Percent"}]
      }
    ]
  }
}
