"""`pullback.scipy.stats.beta`, under the name that programs import."""

from pullback.namespaces import the_rest_of

__getattr__, __dir__ = the_rest_of("pullback.scipy.stats.beta", __name__)
