"""Limits on an upload in another tool's format, beyond the limit on its bytes: named, so that errors can name them."""

from pullback_service.fields import MOST_CASES, MOST_METRICS, MOST_PROCESSES

MOST_RESULTS = MOST_CASES
MOST_VALUES = MOST_PROCESSES  # values of one metric of one result, each from a process of its own
MOST_METRICS_OF_A_RESULT = MOST_METRICS
MOST_SAMPLES = 2_000_000  # values inside one process, of which the median is kept
# Of a body, counted before objects of Python are made of them, which take up to a hundred times their bytes.
MOST_JSON_VALUES = 4_000_000
MOST_JSON_CONTAINERS = 1_000_000  # arrays and objects
HEAVIEST_BYTES = 240 * 1024 * 1024  # of what the values of a body take at once, estimated
HEAVIEST_CASE_BYTES = 32 * 1024 * 1024  # of one case of a report of ours, half a million numbers, validated at once
LONGEST_STRING_BYTES = 2 * 1024 * 1024
MOST_FILES = 20_000
MOST_LINES = 1_000_000
LONGEST_LINE_BYTES = 32 * 1024 * 1024  # a GradBench response with 200,000 timings is one line of 8.5 MB
LONGEST_NAME = 200
LONGEST_PARAMETER = 500
MOST_PARAMETERS = 64
LONGEST_MESSAGE = 2_000
DEEPEST_GROUP = 32
MOST_NOTES = 20
MOST_MEMBERS = 10_000  # of a compressed file: parallel compressors write one for each 64 kB at least
MOST_LAYERS = 2  # of compression: `Content-Encoding: gzip` around a .tar.gz
