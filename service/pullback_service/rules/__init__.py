"""Rules of a project's `pullback.toml`: what of its series is watched, kept within a budget, and told to whom."""
