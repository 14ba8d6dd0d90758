"""The service's messages in terms of the command line: parameters of the API become options."""

import re

_OPTION = r"(project|commit|branch|machine|format|variant|unit|direction|since|state|kind|assignee|origin|suite|limit)"
_FLAG = r"(allow_dirty|dry_run|force)"
_LISTS = {
    "channels": "pullback channel list",
    "incidents": "pullback incident list",
    "jobs": "pullback job list",
    "projects": "pullback project list",
    "series": "pullback export series",
    "tokens": "pullback token list",
}

_WORDS = (
    # Not in addresses (`?project=`), nor in names of cases (`f[machine=4]`).
    (re.compile(rf"(?<![\w?&\[,]){_OPTION}=(?=\w)"), lambda found: f"--{found[1]} "),
    (re.compile(rf"(?<![\w?&\[,]){_FLAG}=true\b"), lambda found: "--" + found[1].replace("_", "-")),
    (re.compile(rf"\bquery\.({_OPTION}|{_FLAG})(?:\[\d+\])?(?!\w)"), lambda found: "--" + found[1].replace("_", "-")),
    (re.compile(rf"\bGET /api/v1/({'|'.join(_LISTS)})(?= lists\b)"), lambda found: f"`{_LISTS[found[1]]}`"),
)


def in_options(sentence: str) -> str:
    """A refusal of the service, with the options and commands of ours in the place of parameters and addresses."""
    for pattern, word in _WORDS:
        sentence = pattern.sub(word, sentence)
    return sentence
