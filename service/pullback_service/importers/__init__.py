"""Other tools' files read as reports: one file per format, pure functions from what was sent to results."""
