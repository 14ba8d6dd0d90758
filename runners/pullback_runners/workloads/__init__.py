"""Functions to differentiate: one file per workload, each with its mathematics, inputs, closed form and sizes."""

from pullback_runners.workloads.case import CPU, CUDA, DEVICES, Case
from pullback_runners.workloads.registry import (
    FIX_IT,
    TIERS,
    UNFUSED,
    Inputs,
    ValueAndGradients,
    Workload,
    find_workload,
    grid,
    known_workloads,
    load_workload_file,
    own_workload,
    workload,
)
from pullback_runners.workloads.selection import (
    AvailableVariants,
    Choice,
    choose_cases,
    load_workload_files,
    select_cases,
)

__all__ = [
    "CPU",
    "CUDA",
    "DEVICES",
    "FIX_IT",
    "TIERS",
    "UNFUSED",
    "AvailableVariants",
    "Case",
    "Choice",
    "Inputs",
    "ValueAndGradients",
    "Workload",
    "choose_cases",
    "find_workload",
    "grid",
    "known_workloads",
    "load_workload_file",
    "load_workload_files",
    "own_workload",
    "select_cases",
    "workload",
]
