import re

from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.history import TIERS
from pullback_dashboards.styles import sheet

PEERS = ("numpy", "autograd", "jax", "torch", "torch-compile")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def themes():
    """The colours of the light theme and of the dark one, which the style sheet says beside each other."""
    colour = "#[0-9a-f]{6}"
    told = re.findall(rf"--([\w-]+): var\(--light, ({colour})\) var\(--dark, ({colour})\);", sheet())
    return {name: light for name, light, _ in told}, {name: dark for name, _, dark in told}


def test_known_variants_differ_in_colour_and_in_marker():
    styles = [line_style_of(variant) for variant in (*TIERS, *PEERS)]
    assert len({look.slot for look in styles}) == len(styles)
    assert len({look.symbol for look in styles}) == len(styles)


def test_strangers_take_different_looks_in_their_order():
    strangers = ("main", "patched")
    assert line_style_of("main", strangers) != line_style_of("patched", strangers)


def test_the_dark_theme_is_switched_on_alike_by_wish_and_by_choice():
    wished, chosen = re.findall(r"\{([^{}]*--dark: initial[^{}]*)\}", sheet())
    assert wished.split() == chosen.split()


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
