"""Planning: from a graph to a schedule, by the lifetimes of values and the memory they live in."""
