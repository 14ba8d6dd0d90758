"""Passes on loops: where there is one, and what a scan need not do in every step.

| pass        | what it does                                                                              |
|-------------|-------------------------------------------------------------------------------------------|
| rolling     | makes a scan of the steps that straight code repeats, before it is differentiated          |
| carries     | drops results without readers; what is carried unchanged becomes a constant               |
| hoisting    | computes what no step changes once, before the loop                                       |
| sums        | `acc += a_t @ b_t` becomes one product of stacked a and b after the loop                  |
| products    | products of constants and inputs are done for all steps at once, before the loop          |

All are exact in that every number is the sum of the same products; the order of additions is BLAS's.
"""

#: A loop that would save fewer nodes stays as it was recorded: it compiles in a moment.
FEWEST_NODES_SAVED = 64
