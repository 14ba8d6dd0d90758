"""Layers as functions: fused rules behind plain signatures."""

from pullback.nn.dense import dense_bias_act
from pullback.nn.recurrent import (
    glorot_uniform,
    gru,
    gru_block,
    gru_cell,
    gru_gates,
    lstm,
    lstm_block,
    lstm_cell,
    lstm_gates,
    rnn,
    rnn_block,
    rnn_cell,
)

__all__ = [
    "dense_bias_act",
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
