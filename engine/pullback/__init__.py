"""An automatic-differentiation engine for NumPy functions, with fused and stateful rules."""
