"""Convolutions with windows of 3 x 3 and steps of one, with 16 products for 2 x 2 results where the direct form has 36.

    tiles, input tiles   2 x 2 results, and the 4 x 4 numbers of the source that they read
    terms            the 16 linear combinations of an input tile, of a window's weights, that are multiplied with each other
    in doubt         tiles whose errors might be larger than 64 eps times the magnitudes they are sums of

Winograd's F(2 x 2, 3 x 3): A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, section 4.1.

    linear combinations           transforms.py
    blocks and panels             plans.py, correlation_kernel.py
    weights, and their bounds     packed_weights.py
    tiles in doubt                guard.py
    these, computed directly      direct_tiles.py

A result is a sum of what its own window reads, here as in the direct form: numbers of the input tile outside its window take no
part in it, not even by errors of rounding. But products of one window are added before they cancel, so the error of a result is
in proportion to the norm of its window, not to the products themselves; and an infinity may become NaN. Tiles for which
that matters are computed directly (decision 73).
"""
