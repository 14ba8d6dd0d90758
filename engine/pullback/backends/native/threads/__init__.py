"""Threads: several for one program, where it has enough work for them.

setting     how many threads the user allows: `pb.threads`
limits      how many this process has processors for
pool        the threads, as LLVM IR
blas        BLAS kept to one thread meanwhile, as LLVM IR
library     both loaded, once a process
sharing     how kernels call it
"""

from pullback.backends.native.threads.library import Counts, counts
from pullback.backends.native.threads.setting import threads

__all__ = ["Counts", "counts", "threads"]
