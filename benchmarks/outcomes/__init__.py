"""How often the runner is right about differences that are known: none, 1 % and 2 %."""
