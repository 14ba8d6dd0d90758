"""One upload: what was measured, on which machine, in what state, and how to measure it again."""
