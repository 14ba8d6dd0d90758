"""Control flow that stays what it is when it is compiled: scan, fori_loop, while_loop, cond, switch.

| file      | what is in it                                                             |
|-----------|---------------------------------------------------------------------------|
| carry     | the rule that a loop hands on what it was given: structure, shape, dtype   |
| leaves    | types of what goes through loops, and how a value is given one             |
| body      | recording the body of a loop once, with what it closes over made explicit  |
| scanning, looping, branching | the functions users call                                |
| scan_rule, while_rule, switch_rule, checkpoint_rule | the primitives they become while a function is compiled |
| transformed | a body made into that of tangents, of cotangents, of a batch              |
| body_partition | what of a body runs forward, what runs back, and what is saved in between   |

On plain values and on a tape the functions run Python's own loops, a step at a time. While a function is being compiled they
become one node with the body as a graph of its own.
"""

from pullback.control import checkpoint_rule, scan_rule, switch_rule, while_rule

__all__ = ["checkpoint_rule", "scan_rule", "switch_rule", "while_rule"]
