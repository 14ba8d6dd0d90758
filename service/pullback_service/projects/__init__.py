"""Projects: whose gradients are measured."""
