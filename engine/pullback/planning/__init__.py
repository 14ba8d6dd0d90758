"""From a graph to a schedule: how long every value lives, and which memory it lives in."""
