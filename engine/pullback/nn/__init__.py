"""Layers as functions: fused rules behind plain signatures."""

from pullback.nn.dense import dense_bias_act

__all__ = ["dense_bias_act"]
