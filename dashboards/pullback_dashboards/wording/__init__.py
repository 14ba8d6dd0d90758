"""How quantities, ratios and moments read on a page: numbers in, words out, nothing of the web."""
