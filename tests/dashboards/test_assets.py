import gzip

import pytest

from pullback_dashboards.assets import NAMES, PLOTLY, asset


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_asset_is_there_and_its_address_holds_its_content(name):
    found = asset(name)
    assert found.address == f"/static/{found.digest}/{name}"
    assert gzip.decompress(found.gzipped) == found.body


def test_plotly_comes_out_of_the_installed_package():
    assert b"plotly.js" in asset(PLOTLY).body[:100]


def test_nothing_else_is_served():
    with pytest.raises(KeyError):
        asset("../pages.py")


def test_our_own_scripts_and_styles_stay_small():
    ours = sum(len(asset(name).gzipped) for name in NAMES - {PLOTLY})
    assert ours < 21_000
