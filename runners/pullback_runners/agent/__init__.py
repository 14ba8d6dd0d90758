"""The agent: a daemon that claims jobs from a service, measures them here and sends what it measured.

The story of a job: claim -> prepare -> measure -> package -> spool -> upload. `daemon.py` tells it; every other loop has a
file of its own (`heartbeat.py`, `job_log.py`, `upload.py`). The service is known only through `client.py`.
"""
