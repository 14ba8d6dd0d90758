"""Control flow that stays what it is when it is compiled: scan, fori_loop, while_loop, cond, switch.

| file      | what is in it                                                             |
|-----------|---------------------------------------------------------------------------|
| carry     | the rule that a loop hands on what it was given: structure, shape, dtype   |
| body      | recording the body of a loop once, with what it closes over made explicit  |
| scanning, looping, branching | the functions users call                               |

On plain values and on a tape the functions run Python's own loops, a step at a time. While a function is being compiled they
become one node with the body as a graph of its own.
"""
