"""`pullback rules`, and what `pullback upload` sends from a checkout of the trunk."""

import json
import subprocess
import sys

import httpx
import pytest
from tests.service.conftest import make_report

from pullback_cli.main import main

RULES = '[project]\nname = "demo"\n\n[[rule]]\nvariant = "fused"\nat_least = 0.02\n\n[[rule]]\nmetric = "array_bytes"\nbudget = 4096\n'


@pytest.fixture
def clone(tmp_path):
    """A repository whose pullback.toml has two rules."""
    folder = tmp_path / "clone"
    folder.mkdir()

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(rules, message="rules"):
        (folder / "pullback.toml").write_text(rules)
        git("add", "-A")
        git("commit", "--quiet", "--allow-empty", "-m", message)
        return git("rev-parse", "HEAD")

    git("init", "--quiet", "--initial-branch=main")
    commit(RULES)
    return type("Clone", (), {"folder": folder, "git": staticmethod(git), "commit": staticmethod(commit)})


@pytest.fixture
def pullback(service, clone, monkeypatch, capfd):
    """Run a command in the clone, in this process."""

    def run(*arguments):
        monkeypatch.chdir(clone.folder)
        monkeypatch.setenv("PULLBACK_SERVER", service)
        monkeypatch.setattr(sys, "argv", ["pullback", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, ended.value.code, *capfd.readouterr())

    return run


@pytest.fixture
def report(clone):
    """Write a report of what is checked out beside the clone."""

    def write(**changes):
        head = clone.git("rev-parse", "HEAD")
        made = make_report(**changes)
        made["commit"] |= {"sha": head, "parents": [], "branch": clone.git("rev-parse", "--abbrev-ref", "HEAD")}
        path = clone.folder.parent / "report.json"
        path.write_text(json.dumps(made))
        return path

    return write


def held(service):
    return httpx.get(f"{service}/api/v1/rules", params={"project": "demo"}).json()


def test_rules_are_sent_shown_and_gone_with_the_file(pullback, service, clone, report):
    httpx.post(f"{service}/api/v1/reports", json=make_report())
    sent = pullback("rules")
    assert sent.returncode == 0, sent.stderr
    assert sent.stdout.startswith("demo: 2 rules hold; main is watched\n  1  variant fused: at_least = 0.02  (since 20")
    assert held(service)["commit"] == clone.git("rev-parse", "HEAD")
    assert (
        json.loads(pullback("rules", "--show", "--project", "demo", "--json").stdout)["rules"] == held(service)["rules"]
    )
    (clone.folder / "pullback.toml").write_text('[project]\nname = "demo"\n')
    assert pullback("rules", "--dry-run").stdout.startswith("demo: 0 rules would hold")
    assert len(held(service)["rules"]) == 2
    assert pullback("rules").stdout.startswith("demo: 0 rules hold")
    assert held(service) | {"trunk": None} == {
        "project": "demo", "trunk": None, "file_trunk": None, "commit": None, "rules": [], "changed": False,
        "older": False, "last_90_days": None, "anchor": None, "anchor_sha": None,
    }  # fmt: skip


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("option", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            RULES + "\n[[rule]]\nworklod = 'a'\n",
            "pullback.toml, line 13: [[rule]] has no key 'worklod'; did you mean 'workload'?",
        ),
        (RULES.replace("4096", "-1"), "pullback.toml, line 10: [[rule]] budget is the most that a value may be"),
        (RULES.replace('"fused"', '"fusd"'), "pullback.toml, line 5: variant 'fusd' matches nothing that was uploaded"),
        (RULES + 'tell = ["team"]\n', "pullback.toml, line 11: There is no channel 'team'"),
    ],
)
def test_a_rule_that_means_nothing_is_refused_whole_with_its_line(pullback, service, clone, rules, said, option):
    httpx.post(f"{service}/api/v1/reports", json=make_report())
    pullback("rules")
    before = held(service)["rules"]
    (clone.folder / "pullback.toml").write_text(rules)
    refused = pullback("rules", *option)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert held(service)["rules"] == before


def test_uploads_send_the_rules_of_the_trunk_and_of_no_other_branch(pullback, service, clone, report):
    sent = pullback("upload", report(), "--log", 0)
    assert sent.returncode == 0, sent.stderr
    assert "  2 rules of pullback.toml are now active" in sent.stdout
    clone.git("checkout", "--quiet", "-b", "topic")
    clone.commit(RULES.replace("0.02", "0.5"))
    assert "now active" not in pullback("upload", report()).stdout
    assert held(service)["rules"][0]["at_least"] == 0.02
    clone.git("checkout", "--quiet", "main")
    clone.commit('[project]\nname = "demo"\n')
    assert "  0 rules of pullback.toml are now active" in pullback("upload", report()).stdout
    assert held(service)["rules"] == []


@pytest.mark.long
def test_rules_are_gone_with_the_file_and_those_of_a_file_elsewhere_stay(pullback, service, clone, report):
    pullback("upload", report(), "--log", 0)
    deleted = ("rm", "--quiet", "pullback.toml"), ("commit", "--quiet", "-m", "no rules")
    clone.git("checkout", "--quiet", "-b", "topic")
    for each in deleted:
        clone.git(*each)
    assert "rules:" not in pullback("upload", report()).stdout
    assert len(held(service)["rules"]) == 2
    clone.git("checkout", "--quiet", "main")
    clone.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic")
    assert "  0 rules of pullback.toml are now active" in pullback("upload", report()).stdout
    assert held(service)["rules"] == []
    assert "rules:" not in pullback("upload", report()).stdout
    elsewhere = {"rules": [{"variant": "fused", "at_least": 0.5}], "commit": "f" * 40}
    httpx.put(f"{service}/api/v1/rules", params={"project": "demo"}, json=elsewhere).raise_for_status()
    assert "rules:" not in pullback("upload", report()).stdout
    assert len(held(service)["rules"]) == 1


def test_a_checkout_that_never_had_the_file_leaves_the_rules_alone(pullback, service, clone, report):
    pullback("upload", report(), "--log", 0)
    clone.git("checkout", "--quiet", "--orphan", "fresh")
    clone.git("rm", "--quiet", "-rf", ".")
    clone.git("commit", "--quiet", "--allow-empty", "-m", "another history")
    clone.git("branch", "--quiet", "-M", "main")
    assert "rules" not in pullback("upload", report()).stdout
    assert len(held(service)["rules"]) == 2


ANCHOR = '[project]\nname = "demo"\n\n[detection]\nanchor = "v1.0"\n'


@pytest.mark.long
def test_the_anchor_is_a_tag_of_the_clone_that_lies_on_the_trunk(pullback, service, clone, report):
    tagged = clone.commit(ANCHOR)
    no_tag = pullback("rules")
    assert (no_tag.returncode, no_tag.stdout) == (2, "")
    assert "pullback.toml, line 5: [detection] anchor: there is no tag 'v1.0' in this clone" in no_tag.stderr
    sent = pullback("upload", report(), "--log", 1)  # a clone without tags
    assert "  0 rules of pullback.toml are now active" in sent.stdout
    assert pullback("rules", "--show").stdout == (
        "demo: 0 rules hold; main is watched, and compared with v1.0 (its commit is not known yet) once a week\n"
    )
    clone.git("tag", "-a", "v1.0", "-m", "one")
    assert f"and compared with v1.0 ({tagged[:10]}) once a week" in pullback("rules").stdout
    assert held(service)["anchor_sha"] == tagged
    clone.git("checkout", "--quiet", "-b", "aside")
    aside = clone.commit(ANCHOR, "elsewhere")
    clone.git("tag", "-f", "v1.0", aside)
    refused = pullback("rules", "--dry-run")
    assert refused.returncode == 2
    assert (
        f"pullback.toml, line 5: [detection] anchor: v1.0 ({aside[:10]}) is not a known commit of main"
        in refused.stderr
    )
    assert held(service)["anchor_sha"] == tagged


def test_results_are_stored_whatever_is_wrong_with_the_rules(pullback, service, clone, report):
    clone.commit(RULES.replace('"fused"', '"fusd"'))
    sent = pullback("upload", report(), "--log", 0)
    assert sent.returncode == 0
    assert (
        "note: the rules of pullback.toml were rejected; the previous rules remain in force: pullback.toml, line 5"
        in sent.stdout
    )
    assert httpx.get(f"{service}/api/v1/projects/demo").status_code == 200


def test_without_a_file_rules_are_shown_by_name_only(pullback, clone):
    (clone.folder / "pullback.toml").unlink()
    refused = pullback("rules")
    assert (refused.returncode, "there is no pullback.toml in" in refused.stderr) == (2, True)


def test_a_report_is_withdrawn_by_its_id(pullback, service):
    made = make_report()
    httpx.post(f"{service}/api/v1/reports", json=made)
    done = pullback("report", "withdraw", made["id"])
    assert (done.returncode, f"report {made['id']} of demo at 0000000000 is withdrawn" in done.stdout) == (0, True)
    assert json.loads(pullback("report", "withdraw", made["id"], "--json").stdout)["status"] == "withdrawn"
    missing = pullback("report", "withdraw", "00000000-0000-0000-0000-000000000000")
    assert (missing.returncode, "There is no report" in missing.stderr) == (2, True)
