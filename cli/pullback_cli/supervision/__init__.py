"""The supervisor behind `pullback up`: a pure plan of processes, one loop that keeps them alive, and a file that remembers them."""
