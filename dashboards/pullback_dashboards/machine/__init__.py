"""One machine: its noise, how it changed, what it did."""
