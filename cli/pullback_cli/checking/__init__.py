"""What `pullback check` is made of: the surroundings, the wait, the verdict, and the forms in which it is told."""
