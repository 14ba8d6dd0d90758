"""Direct convolutions: no windows are copied out, a copy of the data with its padding is read at every tap's offset."""
