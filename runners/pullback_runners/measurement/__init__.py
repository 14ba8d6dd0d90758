"""How a case is measured: gradient checked, memory counted, then timed in lockstep groups."""
