"""How to read a number, how to bring one here, and the words."""
