"""Kernels: what a nest becomes on a GPU, as text that is also compiled for the CPU.

    nest -> passes       nests that one kernel can compute, and the sums of what blocks found      passes.py
         -> grids        axes, vectors, threads, blocks                                            grids.py
         -> phases       the text: what a thread does between two barriers                         phases.py
         -> writing      the kernels of a nest, with their parameters                              kernel_text.py
         -> ptx          kernels around the phases, and PTX                                        ptx.py

The text of phases names no machine: a thread is given its number, that of its block, and the block's shared memory. Nothing
but that memory goes from one phase to the next, so on a CPU the threads of a phase run one after the other, in any order
(`cuda/emulation.py`).
"""
