"""Notifications: what happened in a project, told on the channels that it chose."""
