"""Error rates of the runner's outcomes for differences that are known: none, 1 % and 2 %."""
