"""The first page: every case against its baseline, what changed lately, and who is measuring."""
