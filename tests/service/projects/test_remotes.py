"""Addresses that agents are sent to."""

import pytest
from pydantic import TypeAdapter, ValidationError

from pullback_service.projects.remotes import RepositoryAddress

CHECK = TypeAdapter(RepositoryAddress).validate_python


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("https://git.example/group/demo.git", "https://git.example/group/demo"),
        ("https://git.example:8443/group/demo/", "https://git.example:8443/group/demo"),
        ("ssh://git@git.example/demo.git", "ssh://git@git.example/demo"),
        ("git@git.example:group/demo.git", "ssh://git@git.example/group/demo"),
        ("https://1.1.1.1/demo", "https://1.1.1.1/demo"),
        ("https://[2606:4700::1111]/demo", "https://[2606:4700::1111]/demo"),
        ("https://xn--bcher-kva.example/demo", "https://xn--bcher-kva.example/demo"),
    ],
)
def test_an_address_that_everybody_can_reach_is_stored_in_one_form(given, stored):
    assert CHECK(given) == stored
    assert CHECK(stored) == stored


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("/srv/demo.git", "no https or ssh address"),
        ("../demo", "no https or ssh address"),
        ("file:///srv/demo.git", "no https or ssh address"),
        ("http://git.example/demo", "no https or ssh address"),
        ("ext::sh -c id", "no https or ssh address"),
        ("--upload-pack=id", "no https or ssh address"),
        ("https://someone:secret@git.example/demo", "password or token"),
        ("https://token@git.example/demo", "password or token"),
        ("ssh://git:secret@git.example/demo", "password or token"),
        ("https://git.example/demo?token=secret", "names no repository"),
        ("https://git.example/", "names no repository"),
        ("https://git.example:port/demo", "is no address"),
        *((f"https://{host}/demo", "is a private address") for host in (
            "localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0.1.2.3", "10.1.2.3", "192.168.1.1",
            "169.254.169.254", "100.64.0.1", "[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:10.0.0.1]", "[2002:7f00:1::]",
            "git", "git.local", "git.internal", "localhost.", "224.0.0.1", "localhost.localdomain", "git.home.arpa",
            "[fec0::1]", "[64:ff9b::7f00:1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]",
        )),
        *((f"https://{host}/demo", "no valid host") for host in (
            "%31%32%37.0.0.1", "\uff11\uff12\uff17.0.0.1", "git.\uff4cocal", "127.0.0.1%00.example.com", "-oProxyCommand=id.example",
        )),
        ("git@10.0.0.1:demo", "is a private address"),
    ],
)  # fmt: skip
def test_what_agents_cannot_or_must_not_reach_is_refused_with_a_reason(given, said):
    with pytest.raises(ValidationError, match=said) as caught:
        CHECK(given)
    assert "secret" not in caught.value.errors()[0]["msg"]


@pytest.mark.anyio
async def test_a_claim_says_where_the_commit_is_fetched_from(client, reports):
    fingerprint = reports.report(1)["machine"]
    agent = {"name": "a", "labels": {}, "machine": fingerprint}
    agent_id = (await client.post("/api/v1/agents/enroll", json=agent)).json()["agent_id"]
    wanted = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "quick"}
    assert (await client.post("/api/v1/jobs", json=wanted)).status_code == 201
    refused = await client.patch("/api/v1/projects/demo", json={"repository": "https://10.0.0.1/demo"})
    assert (refused.status_code, "$.repository" in refused.text) == (422, True)
    changed = await client.patch("/api/v1/projects/demo", json={"repository": "https://git.example/demo.git"})
    assert changed.json()["repository"] == "https://git.example/demo"
    claimed = (await client.post(f"/api/v1/agents/{agent_id}/claim", json={"wait_s": 0})).json()
    assert claimed["job"]["repository"] == "https://git.example/demo"
