"""Kernels of loops and branches, whose bodies are programs inside the program."""
