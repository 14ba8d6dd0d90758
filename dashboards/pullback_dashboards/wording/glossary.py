"""The words of Pullback, one per thing, as the help page prints them. Code, tables, JSON and pages use the same ones."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A word and what it means."""

    word: str
    meaning: str


GLOSSARY = (
    Word("workload", "A function to differentiate, with named size parameters: dense_bias_act."),
    Word("case", "A workload at one size, dtype and device: dense_bias_act[n=100,act=tanh,f4,cpu]."),
    Word("variant", "How a case is executed: a tier of our engine, or a peer."),
    Word("tier", "unfused, fused, stateful, native: the same mathematics, four ways of running it."),
    Word("peer", "Another engine on the same case: numpy (hand-written), autograd, jax, torch, torch-compile."),
    Word("baseline", "The variant that every ratio is against: unfused, at the same commit, in the same minutes."),
    Word("reference", "The older commit of a comparison."),
    Word(
        "outcome",
        "What statistics say: faster, slower, same or ambiguous; for exact metrics less, more or equal; failed where "
        "a gradient was wrong or a case did not run.",
    ),
    Word(
        "metric",
        "What is measured: time, array_bytes, array_allocs, native_bytes and so on. Noisy metrics have an interval; "
        "exact ones are counts, of which any change is a change.",
    ),
    Word("group", "One fresh process per variant of a case, all alive on one CPU, taking turns in short slices."),
    Word("pair", "Two members of a group: what a ratio is measured on. Slow minutes of a machine hit both."),
    Word("run", "All groups and counts of some cases at one commit on one machine."),
    Word("report", "One upload: a run, or results from another tool."),
    Word("series", "Project × case × variant × metric × machine."),
    Word("point", "A series at a commit: samples, their summary, and the paired ratio to the baseline."),
    Word("machine", "The hardware, by its fingerprint."),
    Word("agent", "The daemon on a machine that takes jobs and measures."),
    Word("job", "Work for an agent: measure a suite at a commit."),
    Word("lease", "The time-limited right of one agent to do a job; a lost lease goes back to the queue."),
    Word("change", "A level shift found in a series."),
    Word("incident", "The changes that one range of commits caused, over many series."),
    Word("verdict", "A person's judgement of an incident: real, noise, expected or fixed."),
)
