"""Linear algebra: factorizations of matrices and systems of equations, of stacks of matrices too.

stacks.py            places of stacks in lanes
small_matrices.py             matrices of few rows, written out: every element is a register, lanes are matrices or right sides
lapack.py            larger ones, by SciPy's LAPACK and BLAS
cholesky_pullback.py           the pullback of a Cholesky factor, block by block
matrices.py          common parts of emitters
factorizations.py    the emitters of factors
workspaces.py        the workspaces that LAPACK requires
decompositions.py    the emitters of eigenvalues, singular values and QR factors
systems.py           the emitters of solutions
"""
