"""The version of the rule by which steps are judged."""

from typing import Final

RULE: Final = 4
"""Counts up with every change of `judging.py`, `report_pooling.py` or `reference_commits.py` that makes another step of the same points: tasks then
judge all stored history again (`projection.judge_everything`)."""
