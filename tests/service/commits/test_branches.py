"""Branches stand in the order of their first parents, whatever arrives when."""

import json
import threading
from datetime import UTC, datetime, timedelta

import pytest

from pullback_service.commits import queries

pytestmark = pytest.mark.anyio

API = "/api/v1"
DAY = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def say(reports):
    """A commit as a log says it: by default authored on the day of its number, after the one before it."""

    def commit(number, *parents, day=None):
        before = parents or ([number - 1] if number > 1 else [])
        when = DAY + timedelta(days=number if day is None else day)
        return {
            "sha": reports.sha(number),
            "parents": [reports.sha(parent) for parent in before],
            "authored_at": when.isoformat(),
            "title": f"Change {number}",
        }

    return commit


@pytest.fixture
def tell(client):
    async def tell(*commits, branch="main"):
        answer = await client.post(
            f"{API}/commits", json={"project": "demo", "branch": branch, "commits": list(commits)}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    return tell


@pytest.fixture
def on_branch(client):
    """Numbers of the commits of a branch, oldest first, with a `None` where there is a gap."""

    async def read(branch="main"):
        page = (await client.get(f"{API}/commits?project=demo&branch={branch}")).json()["items"]
        found = []
        for commit in reversed(page):
            found += [None] * commit["after_gap"] + [int(commit["sha"], 16)]
        assert [commit["position"] for commit in reversed(page)] == list(range(len(page)))
        return found

    return read


@pytest.fixture
def upload(client, reports):
    async def upload(number, parent=None, *, day=None, **changes):
        report = reports.report(number)
        report["commit"]["parents"] = [reports.sha(number - 1 if parent is None else parent)]
        if day is not None:
            report["commit"]["authored_at"] = (DAY + timedelta(days=day)).isoformat()
        report["commit"] |= changes
        answer = await client.post(f"{API}/reports", json=report)
        assert answer.status_code == 201, answer.text

    return upload


async def test_late_uploads_land_at_their_commit(upload, on_branch, client):
    for number in (3, 1, 2):
        await upload(number)
    assert await on_branch() == [1, 2, 3]
    (series, *_) = (await client.get(f"{API}/series?project=demo&variant=fused&metric=time")).json()["items"]
    points = (await client.get(f"{API}/series/{series['id']}/points")).json()["items"]
    assert [int(point["commit"], 16) for point in points] == [1, 2, 3]


async def test_first_parents_decide_where_clocks_disagree(upload, on_branch, client):
    await upload(1, day=9)
    await upload(3, day=2)
    await upload(2, day=5)
    assert await on_branch() == [1, 2, 3]
    (series, *_) = (await client.get(f"{API}/series?project=demo&variant=fused&metric=time")).json()["items"]
    points = (await client.get(f"{API}/series/{series['id']}/points")).json()["items"]
    assert [int(point["commit"], 16) for point in points] == [1, 2, 3]


async def test_what_is_not_known_between_two_commits_is_shown_as_a_gap_until_a_log_fills_it(
    upload, on_branch, tell, say, client, reports
):
    await upload(2)
    await upload(5)
    assert await on_branch() == [2, None, 5]
    newest = (await client.get(f"{API}/commits?project=demo")).json()["items"][0]
    assert newest["unknown_parents"] == [reports.sha(4)]
    told = await tell(say(5), say(4), say(3), say(2))
    assert (told["new_commits"], told["branch"]["gaps"], told["branch"]["forced_at"]) == (2, 0, None)
    assert await on_branch() == [2, 3, 4, 5]
    assert (await tell(say(5), say(4), say(3), say(2)))["new_commits"] == 0


async def test_a_log_that_leaves_commits_out_is_a_force_push(tell, say, on_branch, client, reports):
    await tell(say(3), say(2), say(1))
    told = await tell(say(7, 1), say(1))
    assert told["branch"]["forced_from"] == reports.sha(3)
    assert told["branch"]["forced_at"]
    assert await on_branch() == [1, 7]
    (listed,) = (await client.get(f"{API}/branches?project=demo")).json()["items"]
    assert listed == told["branch"]
    everything = (await client.get(f"{API}/commits?project=demo")).json()["items"]
    assert len(everything) == 4  # what was measured at the others stays


async def test_an_old_log_only_fills_in(tell, say, on_branch):
    await tell(say(5), say(4))
    assert (await tell(say(4), say(3)))["branch"]["forced_at"] is None
    assert await on_branch() == [3, 4, 5]
    assert (await tell(say(2), say(1)))["branch"]["forced_at"] is None
    assert await on_branch() == [1, 2, 3, 4, 5]


async def test_an_upload_beside_the_branch_does_not_bend_it(tell, say, upload, on_branch):
    await tell(say(3), say(2), say(1))
    await upload(8, parent=1)  # says that it is on main, where 2 follows 1
    assert await on_branch() == [1, 2, 3]


async def test_branches_share_what_they_share(tell, say, on_branch):
    await tell(say(3), say(2), say(1))
    await tell(say(9, 8), say(8, 2), say(2), branch="topic")
    assert await on_branch("topic") == [1, 2, 8, 9]
    assert await on_branch() == [1, 2, 3]


async def test_a_branch_is_listed_page_by_page_also_when_it_lost_a_commit_meanwhile(tell, say, client, reports):
    await tell(say(5), say(4), say(3), say(2), say(1))
    await tell(say(9, 3), branch="topic")

    async def page(cursor=None):
        query = {"project": "demo", "branch": "main", "limit": 2} | ({"cursor": cursor} if cursor else {})
        found = (await client.get(f"{API}/commits", params=query)).json()
        return [int(commit["sha"], 16) for commit in found["items"]], found["next"]

    first, following = await page()
    assert first == [5, 4]
    assert (await page(following))[0] == [3, 2]
    await tell(say(6, 3, day=6), say(3), say(2), say(1))  # 4 and 5 have left
    second, following = await page(following)
    assert second == [3, 2]
    assert await page(following) == ([1], None)


async def test_the_merge_base_across_a_gap_is_looked_for_in_the_graph(tell, say, client, reports):
    await tell(say(2), say(1))
    await tell(say(7, 6), say(6, 2, 5), branch="main")
    query = {"project": "demo", "one": reports.sha(7), "other": reports.sha(1)}
    answer = (await client.get(f"{API}/merge-base", params=query)).json()
    assert answer == {"merge_base": reports.sha(1), "certain": True, "parents_unknown": []}


async def test_the_graph_is_read_and_walked_beside_the_event_loop(tell, say, client, reports, monkeypatch):
    await tell(say(3), say(2), say(1))
    await tell(say(9, 8), say(8, 2), branch="topic")
    noted, find = [], queries._merge_base_in

    def find_noted(written, *commits):
        noted.append((threading.current_thread(), len(json.loads(written))))
        return find(written, *commits)

    monkeypatch.setattr(queries, "_merge_base_in", find_noted)
    query = {"project": "demo", "one": reports.sha(9), "other": reports.sha(3)}
    assert (await client.get(f"{API}/merge-base", params=query)).json()["merge_base"] == reports.sha(2)
    ((thread, commits),) = noted
    assert (thread is threading.current_thread(), commits) == (False, 5)


async def test_the_merge_base_is_found_and_doubt_is_said(tell, say, client, reports):
    await tell(say(3), say(2), say(1))
    await tell(say(9, 8), say(8, 2), branch="topic")

    async def ask(one, other):
        query = {"project": "demo", "one": reports.sha(one), "other": reports.sha(other)}
        return (await client.get(f"{API}/merge-base", params=query)).json()

    assert await ask(9, 3) == {"merge_base": reports.sha(2), "certain": True, "parents_unknown": []}
    for one, other in ((1, 3), (3, 1), (3, 3)):  # along a branch
        older = reports.sha(min(one, other))
        assert await ask(one, other) == {"merge_base": older, "certain": True, "parents_unknown": []}
    await tell(say(21, 20), branch="elsewhere")
    assert await ask(21, 3) == {
        "merge_base": None,
        "certain": False,
        "parents_unknown": [reports.sha(1), reports.sha(20)],
    }
    query = {"project": "demo", "one": reports.sha(77), "other": reports.sha(1)}
    answer = await client.get(f"{API}/merge-base", params=query)
    assert answer.status_code == 404
    assert "pullback log" in answer.json()["detail"]


async def test_parents_that_go_round_in_a_circle_are_refused_and_nothing_is_stored(client, say):
    body = {"project": "demo", "branch": "main", "commits": [say(1, 2), say(2, 1)]}
    answer = await client.post(f"{API}/commits", json=body)
    assert answer.status_code == 422
    assert "its own ancestor" in answer.json()["detail"]
    assert (await client.get(f"{API}/projects")).json()["items"] == []
    for commit in (say(1, 2), say(2, 1)):
        answer = await client.post(f"{API}/commits", json=body | {"commits": [commit]})
    assert answer.status_code == 422
