"""Recurrent layers: cells for one step, fused rules for whole sequences, parameters in one block.

weights      parameters: blocks, their gates by name, what of them a layer reads
cells        one step in primitives: the reference of everything here
sequences    the layers: a rule in the fused tiers, the loop over cells in the unfused one
rule         the primitive of a layer over a sequence and the primitive of its gradient
rnn, lstm, gru   what those two do, in place and with products over all steps
"""

from pullback.nn.recurrent.cells import gru_cell, lstm_cell, rnn_cell
from pullback.nn.recurrent.sequences import gru, lstm, rnn
from pullback.nn.recurrent.weights import glorot_uniform, gru_block, gru_gates, lstm_block, lstm_gates, rnn_block

__all__ = [
    "glorot_uniform",
    "gru",
    "gru_block",
    "gru_cell",
    "gru_gates",
    "lstm",
    "lstm_block",
    "lstm_cell",
    "lstm_gates",
    "rnn",
    "rnn_block",
    "rnn_cell",
]
