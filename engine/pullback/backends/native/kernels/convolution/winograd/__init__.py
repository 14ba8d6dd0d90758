"""Convolutions with windows of 3 x 3 and steps of one, with 16 products for 2 x 2 results where the direct form has 36.

    quads, patches   2 x 2 results, and the 4 x 4 numbers of the source that they meet
    terms            the 16 linear combinations of a patch, of a window's weights, of a quad, that are multiplied with each other

Winograd's F(2 x 2, 3 x 3): A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, section 4.1.

    linear combinations      transforms.py
    a correlation            plans.py, correlating.py
    gradient of the weights  weight_plans.py, summing.py

A result is a sum of what its own window meets, here as in the direct form: numbers of the patch outside its window take no
part in it, not even by errors of rounding. But products of one window are added before they cancel, so the error of a result is
bounded by the largest number in its window times the largest weight of a channel, not by the products themselves; and an infinity
may become NaN. Where any result is not finite, all are computed again directly.
"""
