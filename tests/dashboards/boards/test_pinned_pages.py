import pytest

from pullback_dashboards import links
from pullback_dashboards.boards.pinned_pages import PinnedPage, read_address

WILD = 'a?b#c/d "&'


@pytest.mark.parametrize(
    "address",
    [
        links.explore("org/repo", metric="time", split=""),
        links.workload(WILD, WILD, case="x[n=1,f4]", plot="array_bytes"),
        links.compare("p", head="main", base="topic/é"),
    ],
)
def test_an_address_survives_being_pinned(address):
    pinned = read_address(address)
    assert pinned.address == address
    assert PinnedPage(pinned.kind, pinned.project, pinned.workload, pinned.query).address == address


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/jobs",
        "/projects/p/compare",
        "/projects/p/compare?base=main",
        "/projects/p/commits/abc",
        "//evil.example/projects/p/explore",
        "https://evil.example/projects/p/explore",
        "",
    ],
)
def test_other_addresses_are_not_pinned(address):
    assert read_address(address) is None


def test_where_one_is_in_a_page_is_not_pinned():
    assert read_address(links.compare("p", head="main", start="100", open="7")).query == {"head": ["main"]}


def test_charts_have_images_and_comparisons_have_none():
    assert read_address("/projects/p/explore?metric=time").image == "/projects/p/explore.svg?metric=time&width=600"
    assert read_address("/projects/p/workloads/w").narrow_image == "/projects/p/workloads/w.svg?width=420"
    assert read_address("/projects/p/workloads/w").image == "/projects/p/workloads/w.svg?width=600"
    compared = read_address("/projects/p/compare?head=main")
    assert compared.image is compared.narrow_image is None


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/projects/p/explore", "all series"),
        ("/projects/p/explore?metric=array_allocs&variant=fused&param.n=10&last=30", "n=10, arrays, fused"),
        ("/projects/p/workloads/w?case=w[n=1]&plot=array_bytes", "w[n=1], array bytes"),
        ("/projects/p/workloads/w", "w"),
        ("/projects/p/compare?head=main", "main against its first parent"),
        (f"/projects/p/compare?head={'a' * 40}&base={'b' * 40}", "aaaaaaaaa against bbbbbbbbb"),
        (
            "/projects/p/compare?head=main&head_machine=new&base_machine=old",
            "main against the same commit, new against old",
        ),
    ],
)
def test_a_chart_without_a_title_says_what_it_shows(address, words):
    assert read_address(address).words == words
