"""The state of the service: waiting work, stuck work, and remedies."""
