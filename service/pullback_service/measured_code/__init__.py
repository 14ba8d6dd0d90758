"""The code a number was measured of: the text of the workload, the files of the subject, and the release of the harness."""
