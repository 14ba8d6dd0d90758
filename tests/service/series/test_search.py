"""Series by any composition of their dimensions, and counts of what else there is to choose."""

import hashlib

import pytest
from sqlalchemy import select

from pullback_service.models.series import Case, natural
from pullback_service.series import search
from pullback_service.series.filters import SeriesChoice
from pullback_service.statements import rows

pytestmark = pytest.mark.anyio

URL = "/api/v1/series"


@pytest.fixture
async def measured(client, reports):
    """Two workloads on two machines, one of them at a commit of another branch, and another project."""
    sizes = [reports.case("dense_bias_act"), reports.case("lstm")]
    sizes[1]["case"] = {"workload": "lstm", "params": {"n": 1000, "act": "tanh"}, "dtype": "f8", "device": "gpu"}
    large = reports.case("dense_bias_act")
    large["case"] = {**large["case"], "params": {"n": 1000, "act": "relu"}}
    beside = reports.report(2, cases=[large], machine="other box")
    beside["commit"] |= {"branch": "topic", "sha": reports.sha(99)}
    for upload in (
        reports.report(1, cases=sizes),
        beside,
        reports.report(1, project="else", cases=[reports.case("secret")]),
    ):
        assert (await client.post("/api/v1/reports", json=upload)).status_code == 201
    return client


async def found(client, query):
    response = await client.get(f"{URL}?limit=1000&{query}")
    assert response.status_code == 200, response.text
    return {(item["case"]["workload"], item["case"]["params"]["n"]) for item in response.json()["items"]}


DENSE, LARGE, LSTM, SECRET = ("dense_bias_act", 100), ("dense_bias_act", 1000), ("lstm", 1000), ("secret", 100)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {DENSE, LARGE, LSTM, SECRET}),
        ("project=demo", {DENSE, LARGE, LSTM}),
        ("project=demo&workload=lstm", {LSTM}),
        ("workload=lstm&workload=secret", {LSTM, SECRET}),
        ("param.n=1000", {LARGE, LSTM}),
        ("param=n=1000", {LARGE, LSTM}),
        ("param.n=1000.0", {LARGE, LSTM}),
        ("param.n=1000&param.n=100&param.act=relu", {LARGE}),
        ("param.act=tanh&project=demo", {DENSE, LSTM}),
        ("param.n=ten", set()),
        ("device=gpu", {LSTM}),
        ("dtype=f8&device=cpu", set()),
        ("machine=other+box", {LARGE}),
        ("machine=fingerprint+of+other+box&variant=fused", {LARGE}),
        ("project=demo&branch=topic", {LARGE}),
        ("project=demo&branch=main", {DENSE, LSTM}),
        ("q=dens", {DENSE, LARGE}),
        ("q=bias+1000", {LARGE}),
        ("q=DENSE+relu", {LARGE}),
        ("q=ense", set()),
        ("q=other", {LARGE}),
        ("q=time+ls", {LSTM}),
        ("q=%25+.*", {DENSE, LARGE, LSTM, SECRET}),
    ],
)
async def test_dimensions_narrow_each_other_and_values_of_one_are_alternatives(measured, query, expected):
    assert await found(measured, query) == expected


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("branch=main", 422, "give `project` too"),
        ("project=demo&branch=nowhere", 404, "neither a commit nor a branch"),
        ("project=nothing&branch=main", 404, "'nothing'"),
        ("project=nothing", 404, "'nothing'"),
        ("param=n", 422, "name=value"),
        ("param.=1", 422, "param.name=value"),
        ("param.n=" + "1" * 201, 422, "at most 200 characters"),
        ("&".join(f"param.p{number}=1" for number in range(17)), 422, "at most 16 parameters"),
        ("&".join("workload=a" for _ in range(51)), 422, "query.workload"),
        ("q=" + "+".join("a" * 9), 422, "at most 8 words"),
        ("kind=other", 422, "query.kind"),
        ("limit=1001", 422, "query.limit"),
    ],
)
async def test_what_does_not_hold_is_refused(measured, query, status, said):
    response = await measured.get(f"{URL}?{query}")
    assert response.status_code == status
    problem = response.json()
    assert said in problem["detail"] + str(problem.get("errors")), problem


async def facets(client, query):
    response = await client.get(f"{URL}/facets?{query}")
    assert response.status_code == 200, response.text
    counted = response.json()
    by_name = {
        facet["dimension"]: {value["value"]: value["series"] for value in facet["values"]}
        for facet in counted["facets"]
    }
    return counted["series"], by_name


async def test_facets_count_series_by_every_dimension(measured):
    series, counted = await facets(measured, "project=demo")
    assert series == 12
    assert counted["project"] == {"demo": 12}
    assert counted["workload"] == {"dense_bias_act": 8, "lstm": 4}
    assert counted["variant"] == {"unfused": 6, "fused": 6}
    assert counted["metric"] == {"time": 6, "array_bytes": 6}
    assert counted["machine"] == {"box": 8, "other box": 4}
    assert counted["device"] == {"cpu": 8, "gpu": 4}
    assert counted["dtype"] == {"f4": 8, "f8": 4}
    assert counted["kind"] == {"tier": 12}
    assert counted["param.n"] == {"1000": 8, "100": 4}
    assert counted["param.act"] == {"tanh": 8, "relu": 4}


async def test_a_choice_narrows_the_other_dimensions_and_not_its_own(measured):
    series, counted = await facets(measured, "project=demo&workload=lstm&param.n=1000&metric=time")
    assert series == 2
    assert counted["workload"] == {"dense_bias_act": 2, "lstm": 2}
    assert counted["param.n"] == {"1000": 2}
    assert counted["metric"] == {"time": 2, "array_bytes": 2}
    assert counted["machine"] == {"box": 2}
    assert counted["param.act"] == {"tanh": 2}


async def test_every_count_is_what_choosing_the_value_finds(measured):
    _, counted = await facets(measured, "project=demo&workload=dense_bias_act")
    for dimension, values in counted.items():
        if dimension != "workload":
            for value, count in values.items():
                response = await measured.get(f"{URL}/facets?project=demo&workload=dense_bias_act&{dimension}={value}")
                assert response.json()["series"] == count, (dimension, value)


async def test_facets_of_nothing_are_empty(measured):
    series, counted = await facets(measured, "q=nothing")
    assert series == 0
    assert not any(counted.values())


@pytest.mark.long
async def test_the_most_frequent_hundred_values_are_listed_and_all_are_counted(client, reports):
    upload = reports.report(1, cases=[reports.case(f"workload {number:03}") for number in range(105)])
    assert (await client.post("/api/v1/reports", json=upload)).status_code == 201
    counted = (await client.get(f"{URL}/facets")).json()
    workloads = next(facet for facet in counted["facets"] if facet["dimension"] == "workload")
    assert (len(workloads["values"]), workloads["values_in_all"]) == (100, 105)
    assert workloads["values"][0] == {"value": "workload 000", "series": 4}


async def test_finding_and_counting_take_one_statement_each_beside_the_projects(measured, session, count_statements):
    choice = SeriesChoice(project="demo", workload=["lstm"], params={"n": ["1000"]}, text="dens")
    async with count_statements() as statements:
        await search.list_series(session, choice, limit=10)
        await search.facets(session, choice)
    assert len(statements) == 4


@pytest.mark.parametrize("narrowed", [{}, {"workload": ["workload 7"]}, {"text": "work"}, {"params": {"n": ["100"]}}])
async def test_series_are_counted_without_statistics_of_their_tables(client, reports, session, monkeypatch, narrowed):
    """Right after the first large upload Postgres takes its tables to be as good as empty."""
    upload = reports.report(1, cases=[reports.case(f"workload {number}") for number in range(100)])
    assert (await client.post("/api/v1/reports", json=upload)).status_code == 201
    plans = []

    async def explained(session, statement, values):
        ((plan,),) = await rows(session, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
        plans.append(plan[0]["Plan"])
        return await rows(session, statement, values)

    monkeypatch.setattr(search, "rows", explained)
    counted = await search.facets(session, SeriesChoice(project="demo", **narrowed))
    assert counted.series == (4 if "workload" in narrowed else 400)
    assert most_rows_of(plans[0]) <= 2000  # with each series compared with each case 20,200


def most_rows_of(plan):
    """Rows that one part of a plan gave or left out, however often it ran."""
    each = plan["Actual Rows"] + plan.get("Rows Removed by Join Filter", 0) + plan.get("Rows Removed by Filter", 0)
    return max(each * plan["Actual Loops"], *map(most_rows_of, plan.get("Plans", ())), 0)


async def test_series_are_in_the_order_of_their_names_in_whatever_order_they_came(client, reports, session):
    for machine in ("two", "one"):
        for workload, size in (("zeta", 3), ("alpha", 100), ("alpha", 20)):
            case = reports.case(workload)
            case["case"]["params"] = {"n": size}
            assert (
                await client.post("/api/v1/reports", json=reports.report(1, cases=[case], machine=machine))
            ).is_success
    for choice in (SeriesChoice(project="demo"), SeriesChoice()):
        page = await search.list_series(session, choice, limit=100)
        names = [
            (each.case.workload, each.case.params["n"], each.series.variant, each.series.metric, each.machine.name)
            for each in page
        ]
        assert names == sorted(names)
        assert len(names) == 3 * 4 * 2
        for place, each in enumerate(page):
            following = await search.list_series(session, choice, limit=100, after=each.series.id)
            assert [one.series.id for one in following] == [one.series.id for one in page[place + 1 :]]
            since = await search.list_series(session, choice, limit=1, since=each.series.id)
            assert [one.series.id for one in since] == [each.series.id]


async def test_labels_have_the_same_natural_order_in_python_and_in_the_database(client, reports, session):
    case = reports.case("w0rk")
    case["case"]["params"] = {"n": 20, "rate": 1e-7, "long": 10**13, "name": "7up"}
    assert (await client.post("/api/v1/reports", json=reports.report(1, cases=[case]))).is_success
    ((label, stored),) = await session.execute(select(Case.label, Case.natural_label))
    assert stored == natural(label)


async def test_a_label_that_is_longer_than_an_entry_of_an_index_is_stored_and_has_a_place(client, reports, session):
    cases = []
    for last in ("a", "b"):
        case = reports.case("w0rk")
        digests = {f"p{place}": hashlib.sha512(str(place).encode()).hexdigest() for place in range(28)}
        case["case"]["params"] = {**digests, "last": last}
        cases.append(case)
    answer = await client.post("/api/v1/reports", json=reports.report(1, cases=cases))
    assert answer.is_success, answer.text
    found = dict((await session.execute(select(Case.label, Case.natural_label))).all())
    assert all(len(label) > 3_000 and stored == natural(label) for label, stored in found.items())
    assert len(set(found.values())) == 2
