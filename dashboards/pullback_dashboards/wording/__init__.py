"""Wording of quantities, ratios and moments on pages: numbers in, words out, nothing of the web."""
