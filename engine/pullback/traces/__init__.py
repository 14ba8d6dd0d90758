"""What watches primitives being applied: the tape, the forward sweep, the recorder."""
