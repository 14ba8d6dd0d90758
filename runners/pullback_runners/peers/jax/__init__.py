"""JAX: how it is called, in `adapter`, and one file of forms for each family of workloads."""
