"""The result line `up` prints when the checked-out commit is measured: the ratios a person came for."""

import math

import httpx

from pullback_cli.supervision.first_jobs import FollowedJob
from pullback_cli.supervision.service_api import Item, ServiceApi


def headline(api: ServiceApi, job: FollowedJob, url: str) -> str:
    """Say what was measured at the commit of a finished job, in words."""
    sha = str(job.commit["sha"])[:10]
    if job.state != "done":
        return f"{sha} could not be measured ({job.state}: {job.job.get('failure_message') or 'no reason given'})"
    try:
        ratios = paired_times(api.report(str(job.job["report_id"])))
    except httpx.HTTPError as error:
        return f"{sha} is measured; its ratios could not be read ({error}): {url}"
    if not ratios:
        return f"{sha} is measured: {url}"
    return f"{sha} is measured: " + "; ".join(ratios) + f". More at {url}"


def paired_times(report: Item) -> list[str]:
    """One phrase per case and variant: "dense_bias_act[...] fused 0.61x the time of unfused (faster)"."""
    phrases = []
    for case in report.get("cases", ()):
        name = case["case"]["workload"]
        phrases += [
            f"{name} {pair['variant']} {math.exp(pair['log_ratio']):.2f}x the time of {pair['baseline']} ({pair['outcome']})"
            for pair in case.get("paired", ())
            if pair["metric"] == "time" and pair.get("log_ratio") is not None
        ]
        if case.get("error"):
            phrases.append(f"{name} failed ({case['error']['message']})")
    return phrases
