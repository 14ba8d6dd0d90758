"""Fourier transforms: numpy.fft, which needs no stand-in."""

from pullback.namespaces import the_rest_of

__getattr__, __dir__ = the_rest_of("numpy.fft", __name__)
