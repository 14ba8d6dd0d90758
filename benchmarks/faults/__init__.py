"""Faults in uploads and jobs, by the thousand."""
