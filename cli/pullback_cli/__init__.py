"""The one command `pullback`, the only place that knows every part."""
