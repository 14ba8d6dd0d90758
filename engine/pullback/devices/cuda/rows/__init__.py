"""Evaluation of each primitive on tensors: `ROWS` by name, and `steps.step` for one application at known types."""
