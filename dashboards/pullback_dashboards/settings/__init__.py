"""Settings: what may be changed about projects, machines and tokens, by whom, and who changed what."""
