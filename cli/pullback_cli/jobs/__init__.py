"""The parts of `pullback job`."""
