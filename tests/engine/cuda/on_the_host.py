"""Rules that device arrays leave to NumPy."""

#: Rules that PyTorch has no function for: their operands are fetched and their results put back.
ON_THE_HOST = {
    "adjugate", "beta", "betaln", "binom", "boxcox", "boxcox1p", "cholesky_pull", "convolve", "cosdg", "cosm1",
    "cotdg", "dawsn", "det", "elementwise_map", "ellipe", "ellipk", "erfcinv", "erfi", "exp1", "expi", "expm", "expm_frechet", "exprel",
    "gamma", "huber", "inv", "inv_boxcox", "inv_boxcox1p", "irfft", "j0", "j1", "k0", "k0e", "k1", "k1e",
    "kl_div", "least_squares", "log_expit", "loggamma", "ndtri_exp", "owens_t", "pinv", "poch", "powm1",
    "pseudo_huber", "rel_entr", "rgamma", "rnn", "sindg", "solve", "solve_sylvester", "solve_triangular", "tandg",
    "y0", "y1",
}  # fmt: skip
