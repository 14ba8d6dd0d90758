"""NumPy's surface, translated into primitives."""
