"""`pullback.scipy.stats.dirichlet`, under the name that programs import."""

from pullback.namespaces import the_rest_of

__getattr__, __dir__ = the_rest_of("pullback.scipy.stats.dirichlet", __name__)
