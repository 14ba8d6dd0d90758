"""Slowdowns planted in repositories of NumPy, JAX and PyTorch, equal environments, and the memory of the harness.

`python -m benchmarks.projects planted` makes repositories with a gradient that does 100, 100, 102 and 130 units of work, one
commit each, and compares the later ones with the first as `pullback compare` does: is +2 % found, is +30 %, are equal ones called
different? `same` compares equal commits in one environment and across two that were made of two lock files. `memory` says what
a process that is timed holds beyond a program without Pullback that imports and calls the same.
"""
