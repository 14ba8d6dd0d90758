"""What runs a schedule."""
