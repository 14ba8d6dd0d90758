"""The report of a run: plain values in the shape that all parts agreed on, and the file it travels in."""

from pullback_runners.report.attribution import (
    ENGINE_PROJECT,
    Attribution,
    belonging_of_engine,
    belonging_of_workloads,
)
from pullback_runners.report.document import CaseResult, absences, case_document
from pullback_runners.report.pyperf_file import read_report, write_report

__all__ = [
    "ENGINE_PROJECT",
    "Attribution",
    "CaseResult",
    "absences",
    "belonging_of_engine",
    "belonging_of_workloads",
    "case_document",
    "read_report",
    "write_report",
]
