"""The pages: queries to views to figures to templates."""
