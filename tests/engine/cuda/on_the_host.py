"""Rules that device arrays leave to NumPy and SciPy: their operands are fetched and their results put back."""

#: PyTorch has no function for these; some could be written as several of its calls, `gamma` and what is made of it with fewer digits.
NOT_IN_PYTORCH = {
    "beta", "betaln", "binom", "boxcox", "boxcox1p", "cosdg", "cosm1", "cotdg", "dawsn",
    "elementwise_map", "ellipe", "ellipk", "erfcinv", "erfi", "exp1", "expi", "expm_frechet", "exprel", "gamma", "inv_boxcox",
    "inv_boxcox1p", "kl_div", "ndtri_exp", "owens_t", "poch", "powm1", "pseudo_huber", "rel_entr", "rgamma", "sindg",
    "solve_sylvester", "tandg",
}  # fmt: skip

#: PyTorch's functions for these compute something else.
OTHERWISE_IN_PYTORCH = {
    # off by up to 3e-8 about x = 7 in float64, which is 6e-6 of J1 there
    "j0", "j1", "y0", "y1",
    # of operands of full rank alone, on a GPU: no cutoff, no solution of least norm
    "least_squares",
    # of float and in one dtype; `huber` with one `delta` for all elements
    "convolve", "huber",
}  # fmt: skip

#: On the tape in the tier `fused` alone: unfused they are a loop over cells, and plans write them as loops.
LOOPS_ELSEWHERE = {"rnn"}

#: Rules of matrices: a dtype that depends on values and what belongs to it, SciPy's layouts, and looks at values.
MATRICES = {"eig", "eigvals", "largest_component", "lu_factor", "permutation", "sqrtm", "matrix_rank", "phase_free"}

#: In native programs of the CPU alone.
OF_PLANS = {"lu", "lu_solve"}

ON_THE_HOST = NOT_IN_PYTORCH | OTHERWISE_IN_PYTORCH | LOOPS_ELSEWHERE | MATRICES | OF_PLANS
