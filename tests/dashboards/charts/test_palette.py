import re
from importlib.resources import files

from pullback_dashboards.charts.palette import look_of
from pullback_dashboards.history import TIERS

PEERS = ("numpy", "autograd", "jax", "torch", "torch-compile")
STYLE = files("pullback_dashboards").joinpath("static", "pullback.css").read_text(encoding="utf-8")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def themes():
    """The tokens of each block that sets them: light, dark by the system, dark by choice."""
    blocks = re.findall(r"\{([^{}]*--ground:[^{}]*--series-8[^{}]*)\}", STYLE)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def test_known_variants_differ_in_colour_and_in_marker():
    looks = [look_of(variant) for variant in (*TIERS, *PEERS)]
    assert len({look.slot for look in looks}) == len(looks)
    assert len({look.symbol for look in looks}) == len(looks)


def test_strangers_take_different_looks_in_their_order():
    strangers = ("main", "patched")
    assert look_of("main", strangers) != look_of("patched", strangers)


def test_the_dark_theme_is_the_same_by_wish_and_by_choice():
    light, wished, chosen = themes()
    assert wished == chosen
    assert wished != light


def test_text_keeps_a_contrast_of_four_and_a_half_in_both_themes():
    for theme in themes():
        for ground in ("ground", "surface", "sunken"):
            for ink in ("ink", "ink-2", "ink-3", "accent"):
                assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground, theme[ink], theme[ground])
        assert contrast(theme["failed"], theme["failed-soft"]) >= 4.5
        assert contrast(theme["better-ink"], theme["surface"]) >= 4.5
        assert contrast(theme["worse-ink"], theme["surface"]) >= 4.5


def test_lines_keep_a_contrast_of_three_in_both_themes():
    for theme in themes():
        for slot in range(9):
            assert contrast(theme[f"series-{slot}"], theme["surface"]) >= 3, slot
