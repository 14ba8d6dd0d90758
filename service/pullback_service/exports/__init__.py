"""Exports: all of what a query finds as CSV, JSON lines or Parquet, streamed."""
