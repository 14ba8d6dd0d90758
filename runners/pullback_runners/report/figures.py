"""Charts of a report as Plotly figures. Pure: values in, plain dictionaries out.

Colours are names of the page's own custom properties (`var(--…)`): the page fills them in, for light and dark alike.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pullback_runners.report.summary import baseline_of, case_name, is_on_device
from pullback_runners.report.words import bytes_in_words, duration_in_words, round_bytes_in_words, time_in_words

ROW_PX = 46
_SPREAD = 0.56
"""The share of a row's height for the lines of its variants."""

_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "hexagon", "x")

Figure = dict[str, Any]


def ratio_figure(report: Mapping[str, Any]) -> Figure:
    """Time against the baseline by case and variant, with intervals; to the left of the line is faster."""
    traces = []
    for place, variant in enumerate(_variants(report)):
        rows = list(_time_rows(report, variant))
        if rows:
            factors = [math.exp(row["log_ratio"]) for _, row in rows]
            traces.append(
                {
                    **_marks(variant, place),
                    "x": factors,
                    **_heights(report, [case for case, _ in rows], place, len(_variants(report))),
                    "text": [time_in_words(row) for _, row in rows],
                    "error_x": {
                        "type": "data",
                        "symmetric": False,
                        "array": [math.exp(row["high"]) - f for (_, row), f in zip(rows, factors, strict=True)],
                        "arrayminus": [f - math.exp(row["low"]) for (_, row), f in zip(rows, factors, strict=True)],
                        "thickness": 1.5,
                        "width": 0,
                        "color": f"var(--series-{place})",
                    },
                }
            )
    layout = _layout(report, "log")
    values = [x for trace in traces for x in trace["x"]] + [1.0]
    low, high = min(values), max(values)
    ticks = [10.0**k * m for k in range(-5, 4) for m in (1, 2, 5) if low / 2.2 <= 10.0**k * m <= high * 2.2]
    ticks = [tick for tick in ticks if len(ticks) <= 8 or math.isclose(math.log10(tick) % 1, 0, abs_tol=1e-9)]
    layout["xaxis"] |= {
        "tickvals": ticks,
        "ticktext": [f"{tick:g}×" for tick in ticks],
        "range": [math.log10(low / 1.6), math.log10(high * 1.6)],
    }
    layout["shapes"] += [
        {
            "type": "line",
            "x0": 1,
            "x1": 1,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": "var(--ink-3)", "width": 1},
        }
    ]
    return {"data": traces, "layout": layout}


def memory_figure(report: Mapping[str, Any]) -> Figure:
    """Bytes a call by case and variant, the baseline among them; nothing has a place of its own at the left.

    Of arrays; on a GPU of its pool, which arrays are asked of there.
    """
    first = list(dict.fromkeys(name for case in report["cases"] if (name := baseline_of(case)) is not None))
    metric = "gpu_bytes" if is_on_device(report) else "array_bytes"
    results = {
        variant: [
            (case_name(case), each["metrics"][metric]["value"])
            for case in report["cases"]
            for each in case["variants"]
            if each["variant"] == variant and not each["error"] and each["metrics"][metric]["value"] is not None
        ]
        for variant in [*first, *_variants(report)]
    }
    positive = [value for rows in results.values() for _, value in rows if value] or [1]
    ticks = _byte_ticks(min(positive), max(positive))
    none = ticks[0] / (ticks[-1] / ticks[0]) ** 0.15 / 2
    traces = [
        {
            **_marks(variant, place),
            "x": [value or none for _, value in rows],
            **_heights(report, [case for case, _ in rows], place + len(first), len(results)),
            "text": [bytes_in_words(value) for _, value in rows],
        }
        for place, (variant, rows) in enumerate(results.items(), start=-len(first))
        if rows
    ]
    layout = _layout(report, "log")
    room = (ticks[-1] / none) ** 0.06
    layout["xaxis"] |= {
        "tickvals": [none, *ticks],
        "ticktext": ["none", *(round_bytes_in_words(tick) for tick in ticks)],
        "range": [math.log10(none / room), math.log10(max(*positive, ticks[-1]) * room)],
    }
    return {"data": traces, "layout": layout}


_MOST_BYTE_TICKS = 6


def _byte_ticks(low: int, high: int) -> list[int]:
    """Powers of two from `low` to `high`, as many as have room: 1, 2, 5 or 10 doublings apart, KiB and MiB among them."""
    for step in (1, 2, 5, 10, 20):
        first, last = math.floor(math.log2(low) / step), math.floor(math.log2(high) / step)
        if last - first < _MOST_BYTE_TICKS:
            break
    return [2 ** (step * k) for k in range(first, max(first + 1, last) + 1)]


def process_figure(case: Mapping[str, Any]) -> Figure:
    """Every process of a case: how far absolute times are apart that a paired ratio does not see."""
    traces = []
    variants = [each for each in case["variants"] if not each["error"] and each["metrics"]["time"]["processes"]]
    # The baseline is grey; where there is none nobody is.
    first = -1 if any(each["variant"] == baseline_of(case) for each in variants) else 0
    for place, each in enumerate(variants, start=first):
        processes = each["metrics"]["time"]["processes"]
        traces.append(
            {
                **_marks(each["variant"], place),
                "x": list(range(1, len(processes) + 1)),
                "y": processes,
                "mode": "lines+markers",
                "line": {"width": 1, "color": _colour(place)},
                "text": [duration_in_words(value) for value in processes],
                "hovertemplate": f"{each['variant']}, group %{{x}}: %{{text}}<extra></extra>",
            }
        )
    values = [value for trace in traces for value in trace["y"]] or [1.0]
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    ticks = [10.0**power * mantissa for power in powers for mantissa in (1, 2, 5)]
    shown = [tick for tick in ticks if min(values) / 1.5 <= tick <= max(values) * 1.5]
    axis = {"gridcolor": "var(--rule)", "zeroline": False, "linecolor": "var(--rule-2)", "fixedrange": True}
    layout = {
        **_frame(),
        "height": 260,
        "margin": {"l": 64, "r": 16, "t": 8, "b": 40},
        "xaxis": {
            **axis,
            "title": {"text": "group", "standoff": 8},
            "dtick": 1 if variants and len(traces[0]["x"]) <= 10 else 5,
        },
        "yaxis": {
            **axis,
            "type": "log",
            "tickvals": shown,
            "ticktext": [duration_in_words(tick) for tick in shown],
        },
    }
    return {"data": traces, "layout": layout}


def _heights(report: Mapping[str, Any], cases: Sequence[str], place: int, variants: int) -> Figure:
    """The heights of a variant's marks: each case has a row, in which every variant has its own line."""
    names = [case_name(case) for case in report["cases"]]
    offset = (place - (variants - 1) / 2) * _SPREAD / max(variants - 1, 1)
    return {"y": [names.index(case) + offset for case in cases], "customdata": list(cases)}


def _marks(variant: str, place: int) -> Figure:
    colour = _colour(place)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": variant,
        "marker": {"color": colour, "size": 9, "symbol": _SYMBOLS[(place + 1) % len(_SYMBOLS)]},
        "hovertemplate": f"{variant}: %{{text}}<extra>%{{customdata}}</extra>",
    }


def _colour(place: int) -> str:
    """The baseline is grey."""
    return "var(--ink-3)" if place < 0 else f"var(--series-{place % 8})"


def _frame() -> Figure:
    return {
        "font": {"family": "var(--font)", "size": 12, "color": "var(--ink-2)"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "yref": "container"},
        "hoverlabel": {"bgcolor": "var(--surface)", "bordercolor": "var(--rule-2)", "font": {"color": "var(--ink)"}},
        "showlegend": False,
        "dragmode": False,
    }


def _layout(report: Mapping[str, Any], kind: str) -> Figure:
    names = [case_name(case) for case in report["cases"]]
    axis = {"gridcolor": "var(--rule)", "zeroline": False, "fixedrange": True, "automargin": True}
    bands = [
        {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": row - 0.5,
            "y1": row + 0.5,
            "fillcolor": "var(--ground)",
            "line": {"width": 0},
            "layer": "below",
        }
        for row in range(0, len(names), 2)
    ]
    return {
        **_frame(),
        "shapes": bands,
        "height": 60 + ROW_PX * max(1, len(names)),
        "margin": {"l": 8, "r": 36, "t": 8, "b": 36},
        "xaxis": {**axis, "type": kind},
        "yaxis": {
            **axis,
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "showgrid": False,
            "range": [len(names) - 0.4, -0.6],  # the first case on top
        },
    }


def _variants(report: Mapping[str, Any]) -> Sequence[str]:
    names = (
        each["variant"] for case in report["cases"] for each in case["variants"] if each["variant"] != baseline_of(case)
    )
    return list(dict.fromkeys(names))


def _time_rows(report: Mapping[str, Any], variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for case in report["cases"]:
        for row in case["paired"]:
            if row["variant"] == variant and row["metric"] == "time" and row["log_ratio"] is not None:
                yield case_name(case), row
