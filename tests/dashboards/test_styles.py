from importlib.resources import files
from typing import get_args

from pullback_dashboards.incidents.view import TONES, WRONG
from pullback_dashboards.styles import LAYERS, sheet
from pullback_dashboards.wording import factors
from pullback_service.comparisons.judging import Outcome


def test_the_sheet_holds_every_part_once():
    told = [name for names in LAYERS.values() for name in names]
    there = [part.name for part in files("pullback_dashboards").joinpath("static", "styles").iterdir()]
    assert sorted(f"{name}.css" for name in told) == sorted(there)


def test_comments_and_indentation_go_and_strings_stay():
    lines = sheet().splitlines()
    assert not any("/*" in line or "*/" in line or line != line.strip() or not line for line in lines)
    assert '.trail li + li::before { content: "/"; padding: 0 var(--s2); color: var(--rule-2); }' in lines


def test_the_layers_come_in_the_order_in_which_they_outweigh_each_other():
    found = [line.split()[1] for line in sheet().splitlines() if line.startswith("@layer")]
    assert found == list(LAYERS) == ["tokens", "frame", "parts", "paper"]


def test_every_tone_of_a_sentence_has_its_colour():
    """Templates make these classes of a tone: nobody finds them by their names."""
    coloured = {"better", "worse", "likely-better", "likely-worse", "failed"}
    assert {tone for tone in coloured if f".{tone}-ink" not in sheet()} == set()
    tones = {
        *(tone for tone, _ in TONES.values()),
        WRONG[0],
        *(factors.tone(each, bigger_is_better=False) for each in get_args(Outcome)),
    }
    assert tones <= {*coloured, "plain", "unsure"}
