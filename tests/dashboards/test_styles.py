from importlib.resources import files

from pullback_dashboards.styles import LAYERS, sheet


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
