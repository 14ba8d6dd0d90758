"""Decisions about which changes are announced, and to which channels. Pure."""

from collections.abc import Collection, Sequence
from math import expm1
from typing import Any, NamedTuple

from pullback_service.rules.matching import Key, Rule, Subject, rule_for


class SizedChange(NamedTuple):
    """A change as rules see it. `log_ratio` is None of what has no size, such as a failure: that is never too small."""

    subject: Subject
    log_ratio: float | None
    is_of_budget: bool = False


class AppliedRule(NamedTuple):
    """A rule that changed what is told, with the key by which it did."""

    rule: Rule
    key: Key

    def as_json(self) -> dict[str, Any]:
        """The rule as it is kept with an incident; names of channels are left to who may see them."""
        value = getattr(self.rule, self.key)
        since = self.rule.held_since
        return {
            "number": self.rule.place + 1,
            "says": f"tell, {len(value)} channels" if self.key == "tell" else f"{self.key} = {value:g}",
            "since": None if since is None else since.isoformat(),
            "commit": self.rule.commit_sha,
        }


class Decision(NamedTuple):
    """The channels that are told, None for all of them, and the rules that decided so."""

    channels: Collection[str] | None
    held: Sequence[AppliedRule]

    @property
    def tells(self) -> bool:
        """True if anybody may be told."""
        return self.channels is None or len(self.channels) > 0


def decide(rules: Sequence[Rule], changes: Sequence[SizedChange]) -> Decision:
    """Decide what is told of some changes: those that are not too small, on the channels that their rules name together."""
    applied: dict[tuple[int, Key], AppliedRule] = {}
    channels: set[str] = set()
    to_all = not changes
    for change in changes:
        least = rule_for(rules, change.subject, "at_least")
        if change.is_of_budget:
            _note(applied, rule_for(rules, change.subject, "budget"), "budget")
        elif least is not None and _is_small(change.log_ratio, least.at_least or 0.0):
            _note(applied, least, "at_least")
            continue
        tell = rule_for(rules, change.subject, "tell")
        _note(applied, tell, "tell")
        if tell is None or tell.tell is None:
            to_all = True
        else:
            channels |= set(tell.tell)
    return Decision(None if to_all else channels, [applied[place] for place in sorted(applied)])


def _is_small(log_ratio: float | None, at_least: float) -> bool:
    return log_ratio is not None and abs(expm1(log_ratio)) < at_least


def _note(applied: dict[tuple[int, Key], AppliedRule], rule: Rule | None, key: Key) -> None:
    if rule is not None:
        applied[rule.place, key] = AppliedRule(rule, key)
