"""Drawings: Plotly figures as plain dicts, static SVG, and the colours both share."""
