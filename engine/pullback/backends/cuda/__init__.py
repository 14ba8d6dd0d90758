"""Plans on a device: a graph as a straight line of the functions that `devices.cuda` has for each primitive."""
