"""What `pullback job` is made of."""
