"""The parts of `pullback check`: the surroundings, the wait, the verdict, and its forms."""
