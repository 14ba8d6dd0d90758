"""Test-suites that others wrote, run against the engine."""
