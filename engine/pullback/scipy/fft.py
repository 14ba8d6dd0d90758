"""scipy.fft for traced values."""

from pullback.namespaces import the_rest_of

__getattr__, __dir__ = the_rest_of("scipy.fft", __name__)
