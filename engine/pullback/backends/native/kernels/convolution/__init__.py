"""Convolutions: no windows are copied out, a copy of the data with its padding is read at the offset of every tap.

    axes, correlation    what a convolution and its transpose to the data are: one problem      correlation.py, sliding_window.py
      -> plans           blocks, layout of the copy, tiles: what is expected to be fastest      plans.py, planes.py, tiles.py
      -> kernel          its text                                                               correlation_kernel.py
    weight sums          the transpose to the weights, in one of two ways                       weight_sums.py
      -> kernel          vectors across channels, or along rows                                 channel_weight_sums.py, row_weight_sums.py
    tiles                windows of 3 x 3 with fewer multiplications, where that pays           winograd/

Zeros around the data, and around y in the transpose to the data, are multiplied like other numbers or left out, as is faster: an
infinite or NaN weight may make NaN of results that meet such zeros. Memory is bounded by one block of the data and by the weights.
"""
