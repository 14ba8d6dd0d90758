"""Boards: pages of pinned charts, somebody's own or a project's."""
