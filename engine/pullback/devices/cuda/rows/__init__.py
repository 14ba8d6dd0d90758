"""Evaluation of each primitive on tensors: `ROWS` by name, and `tensor_calls.step` for one application at known types."""
