"""Traces, which watch primitives being applied: the tape, the forward sweep, the recorder."""
