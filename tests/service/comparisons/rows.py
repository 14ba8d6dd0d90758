"""Compared series as columns, made from rows: what `lay_out` makes of thousands, for tests of a few."""

from math import nan

import numpy as np

from pullback_service.comparisons.judgements import NO_SERIES, NaturalOrder, Outcomes, Shape
from pullback_service.comparisons.vectorized_judging import CODE_OF, EVIDENCE_CODE_OF


def outcomes_of(rows):
    """The columns of rows, worst first."""
    shapes = [Shape(row.key[2], row.kind, row.key[3], row.unit, row.direction, row.exact) for row in rows]
    known = list(dict.fromkeys(shapes))
    judgements = [row.judgement for row in rows]
    series_ids = np.array([row.series_id or NO_SERIES for row in rows], np.int64)
    outcomes = Outcomes(
        shapes=known,
        shape=np.array([known.index(shape) for shape in shapes], np.intp),
        case_id=np.array([row.key[0] for row in rows], np.int64),
        machine_id=np.array([row.key[1] for row in rows], np.int64),
        series_id=series_ids,
        reference_series_id=series_ids,
        has_reference=np.array([row.reference is not None for row in rows], bool),
        has_candidate=np.array([row.candidate is not None for row in rows], bool),
        outcome=np.array([CODE_OF[each.outcome] for each in judgements], np.int8),
        evidence=np.array([EVIDENCE_CODE_OF[each.evidence] for each in judgements], np.int8),
        log_ratio=np.array(
            [nan if (ratio := each.ratio.log_ratio) is None else ratio for each in judgements], np.float64
        ),
        tie=series_ids,
    )
    return outcomes.sorted(NaturalOrder(np.unique(outcomes.case_id), np.unique(outcomes.machine_id)))
