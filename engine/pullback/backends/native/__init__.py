"""The native backend: a graph as one machine-code program, made through LLVM without a C compiler.

    graph -> regions      what is emitted, and what stays with the interpreter        regions.py
          -> fusing       elementwise and reducing nodes grouped into loop nests      backends/nests
          -> epilogues    large products and the nests over their results in one      epilogues.py
          -> memory       where every value lives                                     memory.py
          -> program      LLVM IR as text, one function a kernel, one that runs them  program.py, kernels/, backends/llvm
          -> linking      object code, kept on disk, bound to what it calls           linking/
          -> entry        the callable that Python sees                               entry/

The text of a program holds no address: what it needs from outside are symbols or pointers in its table.
"""
