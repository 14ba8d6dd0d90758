"""Programs as scientists write them in plain NumPy, against jax.jit of the same source."""
