"""One commit: its uploads and what they say."""
