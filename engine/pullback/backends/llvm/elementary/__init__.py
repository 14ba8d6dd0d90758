"""Elementary functions, and how every elementwise primitive is computed in registers."""
