"""Linear algebra: numpy.linalg, which needs no stand-in."""

from pullback.namespaces import the_rest_of

__getattr__, __dir__ = the_rest_of("numpy.linalg", __name__)
