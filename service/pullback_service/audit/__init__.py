"""The audit log: who wrote what."""
