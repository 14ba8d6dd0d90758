"""The parts of `pullback check`: the context of CI, the wait, the verdict, and its forms."""
