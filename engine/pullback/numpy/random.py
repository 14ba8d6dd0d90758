"""Random numbers; they depend on no argument that is differentiated: numpy.random, which needs no stand-in."""

from pullback.namespaces import the_rest_of

__getattr__, __dir__ = the_rest_of("numpy.random", __name__)
