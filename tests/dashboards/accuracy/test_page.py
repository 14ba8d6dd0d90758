"""The page of accuracy: verdicts of people as precision, by what they are about; and how small a step would be noticed."""

import csv
import io

import pytest

pytestmark = pytest.mark.anyio

PAGE = "/projects/demo/accuracy"


@pytest.fixture
async def found(stored_history):
    """Two incidents of counts in different workloads."""
    for number, (lstm, dense) in enumerate(((1024.0, 1024.0), (4096.0, 1024.0), (4096.0, 4096.0), (4096.0, 4096.0)), 1):
        document = stored_history.commit(number, array_bytes=lstm)
        (case,) = [case for case in document["cases"] if case["case"]["workload"] == "dense"]
        case["variants"][1]["metrics"]["array_bytes"]["value"] = dense
        await stored_history.upload(document)
    return stored_history


@pytest.fixture
async def judged(found):
    """The same, of which one is called noise."""
    for incident, verdict in ((1, "real"), (2, "noise")):
        answer = await found.client.post(f"/api/v1/incidents/{incident}/verdict", json={"verdict": verdict})
        assert answer.status_code == 200, answer.text
    return found


async def test_nothing_is_said_while_nothing_was_found(stored_history):
    await stored_history.upload(stored_history.commit(1))
    page = (await stored_history.client.get(PAGE)).text
    assert "No incident has been confirmed or found likely yet" in page


@pytest.mark.long
async def test_tables_of_verdicts_come_with_the_first_verdict(found):
    assert "2 incidents</a> were confirmed or likely, and none was judged" in " ".join(
        (await found.client.get(PAGE)).text.split()
    )
    assert "By workload" not in (await found.client.get(PAGE)).text
    (await found.client.post("/api/v1/incidents/1/verdict", json={"verdict": "real"})).raise_for_status()
    assert "By workload" in (await found.client.get(PAGE)).text


async def test_precision_is_what_people_called_right_of_what_they_judged(judged):
    view = (await judged.client.get(f"{PAGE}.json")).json()
    assert {name: view["whole"][name] for name in ("said", "right", "noise", "withdrawn")} == {
        "said": 2, "right": 1, "noise": 1, "withdrawn": 1,
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO((await judged.client.get(f"{PAGE}.csv")).text)))
    assert {(row["part"], row["name"]): row["precision"] for row in rows} == {
        ("all", ""): "0.5",
        ("evidence", "confirmed"): "0.5",
        ("machine", "box"): "0.5",
        ("workload", "dense"): "0.0",
        ("workload", "lstm"): "1.0",
    }
    told = (await judged.client.get("/api/v1/incidents/accuracy", params={"project": "demo"})).json()
    assert {(each["part"], each["name"], str(each["precision"])) for each in (told["whole"], *told["parts"])} == {
        (row["part"], row["name"], row["precision"]) for row in rows
    }
    page = (await judged.client.get(PAGE)).text
    assert "1 right, 1 noise" in page
    assert "50 %" in page


@pytest.mark.long
async def test_a_verdict_that_was_taken_back_does_not_count(judged):
    (await judged.client.delete("/api/v1/incidents/2/verdict")).raise_for_status()
    whole = (await judged.client.get(f"{PAGE}.json")).json()["whole"]
    assert (whole["right"], whole["noise"]) == (1, 0)


@pytest.mark.long
async def test_the_smallest_step_that_would_be_noticed_is_told_of_each_machine_and_case(stored_history, reports):
    await stored_history.upload(*(stored_history.commit(number) for number in range(1, 25)))
    noticed = (await stored_history.client.get(f"{PAGE}.json")).json()["noticed"]
    assert [(one["machine"], one["metric"]) for one in noticed] == [("box", "time")]
    assert 0 < noticed[0]["half"] < 0.3
    case = f"/projects/demo/commits/{reports.sha(24)}/cases/lstm%5Bn=100,act=tanh,f4,cpu%5D"
    blocks = {
        one["variant"]: one["resolution"]
        for one in (await stored_history.client.get(f"{case}.json")).json()["variants"]
    }
    assert 0 < blocks["fused"] < 0.3
    assert "noticed from" in (await stored_history.client.get(case)).text
