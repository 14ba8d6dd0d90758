"""Several threads for one program, where it has work enough for them.

limits      how many threads this process should use
pool        the threads, as LLVM IR
blas        BLAS kept to one thread meanwhile, as LLVM IR
library     both loaded, once a process
sharing     how kernels call it
"""

from pullback.backends.native.threads.library import Counts, counts, thread_limit, use_threads

__all__ = ["Counts", "counts", "thread_limit", "use_threads"]
