"""What `pullback export` asks for, and how the answer becomes a file."""
