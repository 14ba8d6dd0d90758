"""The feed of a project: what changed, for feed readers."""
