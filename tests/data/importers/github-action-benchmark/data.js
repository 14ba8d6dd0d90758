window.BENCHMARK_DATA = {
  "lastUpdate": 1795292824279,
  "repoUrl": "https://github.com/o/r",
  "entries": {
    "Python": [
      {
        "commit": {
          "id": "1111111111111111111111111111111111111111",
          "message": "Change it",
          "timestamp": "2026-09-01T10:00:00+02:00",
          "url": "https://github.com/o/r/commit/1111111111111111111111111111111111111111",
          "author": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          },
          "committer": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          }
        },
        "date": 1795292790608,
        "tool": "pytest",
        "benches": [
          {
            "name": "test_maths.py::test_apply[sin-10]",
            "value": 1010495.7130829092,
            "unit": "iter/sec",
            "range": "stddev: 7.214415211717375e-7",
            "extra": "mean: 989.6133027117078 nsec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_apply[sin-100]",
            "value": 190734.61897765903,
            "unit": "iter/sec",
            "range": "stddev: 3.219672289440896e-7",
            "extra": "mean: 5.242886715374576 usec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_apply[cos-10]",
            "value": 1222364.3639890351,
            "unit": "iter/sec",
            "range": "stddev: 6.48921203648728e-8",
            "extra": "mean: 818.0866764935976 nsec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_apply[cos-100]",
            "value": 194300.01652165904,
            "unit": "iter/sec",
            "range": "stddev: 1.7345588211938263e-7",
            "extra": "mean: 5.146679953516771 usec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_sort",
            "value": 473802.78023525706,
            "unit": "iter/sec",
            "range": "stddev: 3.7248465490900665e-7",
            "extra": "mean: 2.1105828030461757 usec\nrounds: 12"
          },
          {
            "name": "test_maths.py::test_object",
            "value": 5868544.017489624,
            "unit": "iter/sec",
            "range": "stddev: 9.11339443999222e-8",
            "extra": "mean: 170.40001694113016 nsec\nrounds: 5"
          }
        ]
      },
      {
        "commit": {
          "id": "2222222222222222222222222222222222222222",
          "message": "Change it",
          "timestamp": "2026-09-02T10:00:00+02:00",
          "url": "https://github.com/o/r/commit/2222222222222222222222222222222222222222",
          "author": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          },
          "committer": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          }
        },
        "date": 1795292797781,
        "tool": "pytest",
        "benches": [
          {
            "name": "test_maths.py::test_apply[sin-10]",
            "value": 1035875.8412152439,
            "unit": "iter/sec",
            "range": "stddev: 5.426077046731617e-7",
            "extra": "mean: 965.3666590262826 nsec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_apply[sin-100]",
            "value": 187718.6925721467,
            "unit": "iter/sec",
            "range": "stddev: 2.726197065822379e-7",
            "extra": "mean: 5.327119991610137 usec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_apply[cos-10]",
            "value": 1174214.2624034588,
            "unit": "iter/sec",
            "range": "stddev: 6.343974100998028e-8",
            "extra": "mean: 851.6333279355119 nsec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_apply[cos-100]",
            "value": 191501.17981407073,
            "unit": "iter/sec",
            "range": "stddev: 1.827826805918577e-7",
            "extra": "mean: 5.221899943232226 usec\nrounds: 15"
          },
          {
            "name": "test_maths.py::test_sort",
            "value": 413593.5202145222,
            "unit": "iter/sec",
            "range": "stddev: 4.573391416271314e-7",
            "extra": "mean: 2.417832850672615 usec\nrounds: 12"
          },
          {
            "name": "test_maths.py::test_object",
            "value": 6493475.456611404,
            "unit": "iter/sec",
            "range": "stddev: 7.40271238289704e-8",
            "extra": "mean: 154.00073607452214 nsec\nrounds: 5"
          }
        ]
      }
    ],
    "Rust": [
      {
        "commit": {
          "id": "2222222222222222222222222222222222222222",
          "message": "Change it",
          "timestamp": "2026-09-02T10:00:00+02:00",
          "url": "https://github.com/o/r/commit/2222222222222222222222222222222222222222",
          "author": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          },
          "committer": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          }
        },
        "date": 1795292805792,
        "tool": "cargo",
        "benches": [
          {
            "name": "bench_fib_10",
            "value": 135,
            "range": "± 6",
            "unit": "ns/iter"
          }
        ]
      }
    ],
    "Load": [
      {
        "commit": {
          "id": "1111111111111111111111111111111111111111",
          "message": "Change it",
          "timestamp": "2026-09-01T10:00:00+02:00",
          "url": "https://github.com/o/r/commit/1111111111111111111111111111111111111111",
          "author": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          },
          "committer": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          }
        },
        "date": 1795292820478,
        "tool": "customBiggerIsBetter",
        "benches": [
          {
            "name": "CPU load",
            "value": 50,
            "range": "3",
            "unit": "Percent",
            "extra": "text"
          },
          {
            "name": "Backward pass",
            "value": 12.5,
            "range": "± 0.4",
            "unit": "ms"
          }
        ]
      },
      {
        "commit": {
          "id": "2222222222222222222222222222222222222222",
          "message": "Change it",
          "timestamp": "2026-09-02T10:00:00+02:00",
          "url": "https://github.com/o/r/commit/2222222222222222222222222222222222222222",
          "author": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          },
          "committer": {
            "name": "A. Author",
            "email": "a@example.org",
            "username": "author"
          }
        },
        "date": 1795292824117,
        "tool": "customBiggerIsBetter",
        "benches": [
          {
            "name": "CPU load",
            "value": 50,
            "range": "3",
            "unit": "Percent",
            "extra": "text"
          },
          {
            "name": "Backward pass",
            "value": 12.5,
            "range": "± 0.4",
            "unit": "ms"
          }
        ]
      }
    ]
  }
}
