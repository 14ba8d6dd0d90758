"""The calls of the API. Made by `make api` from the description of the API: change the service, not this file."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pullback_service.client import models
from pullback_service.client.answers import Content
from pullback_service.client.connection import Body, Sender


class Client(Sender):
    """Every operation of the API."""

    def list_projects(self, *, limit: int | None = None, cursor: str | None = None) -> models.PageOfProjectSummary:
        """Projects by name."""
        return self._ask(models.PageOfProjectSummary, "GET", "/api/v1/projects", locals())

    def create_project(self, statement: models.ProjectRequest) -> models.ProjectSummary:
        """Make a project before its first upload."""
        return self._ask(models.ProjectSummary, "POST", "/api/v1/projects", locals())

    def read_project(self, name: str) -> models.ProjectSummary:
        """A project."""
        return self._ask(models.ProjectSummary, "GET", "/api/v1/projects/{name}", locals())

    def change_project(self, name: str, statement: models.ProjectChange) -> models.ProjectSummary:
        """Update the given settings only."""
        return self._ask(models.ProjectSummary, "PATCH", "/api/v1/projects/{name}", locals(), repeatable=True)

    def list_commits(
        self, *, project: str, branch: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> models.PageOfCommitSummary:
        """Commits of a project, newest in history first."""
        return self._ask(models.PageOfCommitSummary, "GET", "/api/v1/commits", locals())

    def tell_log(self, statement: models.LogStatement) -> models.BranchReceipt:
        """Tell what a branch is: its newest commit and that one's first parents.

        Telling it again changes nothing.

        Without a branch only the commits are stored, as for a check of a commit whose branch is not known yet. Commits
        that were on the branch and are contradicted by this leave it, as after a force-push.
        """
        return self._ask(models.BranchReceipt, "POST", "/api/v1/commits", locals(), repeatable=True)

    def list_branches(
        self, *, project: str, limit: int | None = None, cursor: str | None = None
    ) -> models.PageOfBranchSummary:
        """Branches of a project by name."""
        return self._ask(models.PageOfBranchSummary, "GET", "/api/v1/branches", locals())

    def find_merge_base(self, *, project: str, one: str, other: str) -> models.MergeBaseAnswer:
        """The newest commit that two commits both descend from."""
        return self._ask(models.MergeBaseAnswer, "GET", "/api/v1/merge-base", locals())

    def list_machines(self, *, limit: int | None = None, cursor: str | None = None) -> models.PageOfMachineSummary:
        """Machines in the order of their names."""
        return self._ask(models.PageOfMachineSummary, "GET", "/api/v1/machines", locals())

    def change_machine(self, machine_id: int, statement: models.MachineChange) -> models.MachineSummary:
        """Say whether a machine runs untrusted jobs: approved ones of forks. What it is at work on is not touched."""
        return self._ask(models.MachineSummary, "PATCH", "/api/v1/machines/{machine_id}", locals(), repeatable=True)

    def read_noise(self, machine_id: int, *, days: int | None = None, metric: str | None = None) -> models.MachineNoise:
        """Read the noise of a machine: the differences between two runs of one commit, by its A/A comparisons."""
        return self._ask(models.MachineNoise, "GET", "/api/v1/machines/{machine_id}/noise", locals())

    def list_machine_changes(
        self, machine_id: int, *, limit: int | None = None, cursor: str | None = None
    ) -> models.PageOfFactsChange:
        """List the changes of a machine's facts, the last change first: another kernel, another NumPy, another name."""
        return self._ask(models.PageOfFactsChange, "GET", "/api/v1/machines/{machine_id}/changes", locals())

    def upload_report(
        self,
        content: Body,
        *,
        project: str | None = None,
        commit: str | None = None,
        branch: str | None = None,
        machine: str | None = None,
        format: str | None = None,
        variant: str | None = None,
        unit: str | None = None,
        direction: str | None = None,
        authored_at: datetime | None = None,
        dirty: bool | None = None,
        allow_dirty: bool | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> models.UploadReceipt:
        """Store a report of ours, bare or as the key `pullback` of a pyperf file, or the file of another tool.

        Read are pyperf, pytest-benchmark, asv, Google Benchmark, BenchmarkTools.jl, criterion.rs, hyperfine, github-
        action-benchmark, the Bencher Metric Format, Conbench and GradBench, recognised by content or by `format=`. Our
        own reports say everything themselves, and the query only confirms it; for other tools' files the query says
        project, commit, branch and machine.
        """
        return self._ask(models.UploadReceipt, "POST", "/api/v1/reports", locals(), repeatable=True)

    def list_reports(
        self,
        *,
        project: str | None = None,
        commit: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.PageOfReportSummary:
        """Reports, newest upload first."""
        return self._ask(models.PageOfReportSummary, "GET", "/api/v1/reports", locals())

    def read_report(self, report_id: UUID) -> models.ReportDetail:
        """A report and its document, without the pyperf file it may have come in."""
        return self._ask(models.ReportDetail, "GET", "/api/v1/reports/{report_id}", locals())

    def read_body_of_report(self, report_id: UUID) -> Content:
        """The uploaded file, decompressed, else byte for byte: `python -m pyperf stats` reads what pyperf wrote."""
        return self._fetch("GET", "/api/v1/reports/{report_id}/body", locals())

    def withdraw_report(self, report_id: UUID) -> models.ReportSummary:
        """Withdraw a report that was uploaded by mistake: it is kept, what it measured leaves history, and its incidents are judged again."""
        return self._ask(models.ReportSummary, "POST", "/api/v1/reports/{report_id}/withdraw", locals())

    def read_rules(self, *, project: str) -> models.RulesAnswer:
        """The rules of a project that hold, in the order of its `pullback.toml`."""
        return self._ask(models.RulesAnswer, "GET", "/api/v1/rules", locals())

    def replace_rules(
        self, statement: models.RulesStatement, *, project: str, dry_run: bool | None = None
    ) -> models.RulesAnswer:
        """Put the rules of a file in the place of those that hold: what is gone from the file is gone here.

        Refused whole where a glob matches nothing that was uploaded, a budget is impossible, or a channel is not there;
        the previous rules then remain in force. Incidents that were announced already stay announced.
        """
        return self._ask(models.RulesAnswer, "PUT", "/api/v1/rules", locals())

    def list_series(
        self,
        *,
        branch: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        project: str | None = None,
        workload: list[str] | None = None,
        case: list[str] | None = None,
        dtype: list[str] | None = None,
        device: list[str] | None = None,
        variant: list[str] | None = None,
        kind: list[Literal["tier", "peer", "external"]] | None = None,
        metric: list[str] | None = None,
        machine: list[str] | None = None,
        param: list[str] | None = None,
        q: str | None = None,
    ) -> models.PageOfSeriesSummary:
        """Series by any composition of their dimensions; a dimension that is repeated takes any of its values.

        `?project=demo&metric=time&variant=native&variant=fused&param.n=1000&q=dens`
        """
        return self._ask(models.PageOfSeriesSummary, "GET", "/api/v1/series", locals())

    def count_series(
        self,
        *,
        branch: str | None = None,
        project: str | None = None,
        workload: list[str] | None = None,
        case: list[str] | None = None,
        dtype: list[str] | None = None,
        device: list[str] | None = None,
        variant: list[str] | None = None,
        kind: list[Literal["tier", "peer", "external"]] | None = None,
        metric: list[str] | None = None,
        machine: list[str] | None = None,
        param: list[str] | None = None,
        q: str | None = None,
    ) -> models.FacetsSummary:
        """Count series by the values of each dimension, under a choice of series."""
        return self._ask(models.FacetsSummary, "GET", "/api/v1/series/facets", locals())

    def list_points(
        self,
        series_id: int,
        *,
        marks: int | None = None,
        raw: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        last: int | None = None,
        branch: str | None = None,
    ) -> models.PointPage:
        """Points of one series in a window of history, oldest commit first, one for each commit: its reports are pooled.

        Windows compose: `?from=c0ffee1&branch=main&last=500` are the newest 500 commits of main from that one on.
        """
        return self._ask(models.PointPage, "GET", "/api/v1/series/{series_id}/points", locals())

    def list_points_of_series(
        self,
        *,
        raw: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        project: str | None = None,
        workload: list[str] | None = None,
        case: list[str] | None = None,
        dtype: list[str] | None = None,
        device: list[str] | None = None,
        variant: list[str] | None = None,
        kind: list[Literal["tier", "peer", "external"]] | None = None,
        metric: list[str] | None = None,
        machine: list[str] | None = None,
        param: list[str] | None = None,
        q: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        last: int | None = None,
        branch: str | None = None,
    ) -> models.PageOfSeriesPoint:
        """Points of all chosen series in a window of history, series by series, then oldest commit first.

        A page may be short, or empty, and still have a `next`. `?project=demo&metric=time&last=100&format=csv`
        """
        return self._ask(models.PageOfSeriesPoint, "GET", "/api/v1/points", locals())

    def compare_commits(
        self,
        *,
        head: str,
        base: str | None = None,
        outcome: list[models.Outcome] | None = None,
        merge_base: bool | None = None,
        head_machine: str | None = None,
        base_machine: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        project: str | None = None,
        workload: list[str] | None = None,
        case: list[str] | None = None,
        dtype: list[str] | None = None,
        device: list[str] | None = None,
        variant: list[str] | None = None,
        kind: list[Literal["tier", "peer", "external"]] | None = None,
        metric: list[str] | None = None,
        machine: list[str] | None = None,
        param: list[str] | None = None,
        q: str | None = None,
    ) -> models.ComparisonPage:
        """Every series that either commit has, worst first.

        The order is: failed, worse, likely worse, ambiguous, better, likely better, unchanged, not comparable.

        `?project=demo&base=main&head=topic&merge_base=true&metric=time` is what a branch did to time since its merge
        base with main. Series are chosen as in `GET /series`.
        `?project=demo&head=main&base_machine=old&head_machine=new` compares two machines at one commit: counts compare,
        times do not, but for their ratios to the baseline. Series are then called by the machine that is judged.
        """
        return self._ask(models.ComparisonPage, "GET", "/api/v1/comparisons", locals())

    def check_commit(
        self,
        *,
        project: str,
        head: str,
        base: str | None = None,
        suite: str | None = None,
        case: list[str] | None = None,
        variant: list[str] | None = None,
    ) -> models.CheckAnswer:
        """Check a commit: its changes against its base, and what is missing to know them.

        It is compared with the merge base of `head` and `base`, and against nothing else: where that has no results,
        `lacks` says so, with the remedy. A commit that is on `base` already is compared with its first parent. Outcomes
        are those of `GET /comparisons`. Reading measures nothing: where `wants_job` is true, a job of the kind
        `compare` would (`POST /jobs`).
        """
        return self._ask(models.CheckAnswer, "GET", "/api/v1/checks", locals())

    def read_matrix(
        self,
        *,
        project: str,
        machine: str | None = None,
        metric: str | None = None,
        branch: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.PageOfWorkloadSummary:
        """Every case of a project, each at the newest commit that has it on that machine, by workload."""
        return self._ask(models.PageOfWorkloadSummary, "GET", "/api/v1/matrix", locals())

    def list_incidents(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        project: str | None = None,
        state: list[
            Literal["suspected", "confirming", "confirmed", "refuted", "unconfirmed", "likely", "resolved", "merged"]
        ]
        | None = None,
        kind: Literal["worse", "better", "unsteady", "wrong_gradient", "failed", "missing"] | None = None,
        since: datetime | None = None,
        assignee: str | None = None,
        workload: str | None = None,
        case: str | None = None,
        variant: str | None = None,
        machine: str | None = None,
    ) -> models.PageOfIncidentSummary:
        """List incidents, newest first. Improvements are of the kind `better`."""
        return self._ask(models.PageOfIncidentSummary, "GET", "/api/v1/incidents", locals())

    def read_accuracy(self, *, project: str) -> models.Accuracy:
        """The share of a project's incidents that people called right, and how small a step would be noticed."""
        return self._ask(models.Accuracy, "GET", "/api/v1/incidents/accuracy", locals())

    def read_incident(self, incident_id: int) -> models.IncidentDetail:
        """An incident with all its changes, what happened to it, and what people said."""
        return self._ask(models.IncidentDetail, "GET", "/api/v1/incidents/{incident_id}", locals())

    def give_verdict(self, incident_id: int, statement: models.VerdictRequest) -> models.IncidentDetail:
        """Record a verdict on an incident. One that became a part of another is a conflict that names the other."""
        return self._ask(
            models.IncidentDetail, "POST", "/api/v1/incidents/{incident_id}/verdict", locals(), repeatable=True
        )

    def revoke_verdict(self, incident_id: int) -> models.IncidentDetail:
        """Revoke the verdict of an incident; its state follows the evidence again."""
        return self._ask(
            models.IncidentDetail, "DELETE", "/api/v1/incidents/{incident_id}/verdict", locals(), repeatable=True
        )

    def assign_incident(self, incident_id: int, statement: models.AssigneeRequest) -> models.IncidentDetail:
        """Assign an incident to a person, or remove the assignee."""
        return self._ask(models.IncidentDetail, "PUT", "/api/v1/incidents/{incident_id}/assignee", locals())

    def confirm_incident(self, incident_id: int) -> models.IncidentDetail:
        """Have both ends of an incident measured again in turns, now: `job_id` is the job.

        One that waits or runs already stays as it is.

        A conflict where no agent can measure it.
        """
        return self._ask(models.IncidentDetail, "POST", "/api/v1/incidents/{incident_id}/confirm", locals())

    def bisect_incident(self, incident_id: int) -> models.IncidentDetail:
        """Search for the commit that caused a confirmed incident: jobs of the origin `bisect`, one after the other.

        A search that goes on stays as it is; a finished one is started again, with the stored results. A conflict where
        the range is one commit, where the incident is not confirmed, or where no agent can measure it.
        """
        return self._ask(models.IncidentDetail, "POST", "/api/v1/incidents/{incident_id}/bisect", locals())

    def list_boards(self, *, limit: int | None = None, cursor: str | None = None) -> models.PageOfBoardSummary:
        """The caller's own boards, then those of projects, by name."""
        return self._ask(models.PageOfBoardSummary, "GET", "/api/v1/boards", locals())

    def create_board(self, statement: models.BoardRequest) -> models.BoardSummary:
        """Make a board, one's own or a project's."""
        return self._ask(models.BoardSummary, "POST", "/api/v1/boards", locals())

    def read_board(self, board_id: UUID) -> models.BoardDetail:
        """A board with what is pinned to it. A personal board can be read by everyone who has its address."""
        return self._ask(models.BoardDetail, "GET", "/api/v1/boards/{board_id}", locals())

    def rename_board(self, board_id: UUID, statement: models.BoardChange) -> models.BoardSummary:
        """Give a board another name."""
        return self._ask(models.BoardSummary, "PATCH", "/api/v1/boards/{board_id}", locals(), repeatable=True)

    def remove_board(self, board_id: UUID) -> models.BoardSummary:
        """Remove a board and what is pinned to it; what it was is the answer."""
        return self._ask(models.BoardSummary, "DELETE", "/api/v1/boards/{board_id}", locals())

    def pin_chart(self, board_id: UUID, statement: models.ChartRequest) -> models.PinReceipt:
        """Pin a chart at the end of a board. What is there already stays where it is."""
        return self._ask(models.PinReceipt, "POST", "/api/v1/boards/{board_id}/charts", locals(), repeatable=True)

    def change_chart(self, board_id: UUID, chart_id: int, statement: models.ChartChange) -> models.ChartSummary:
        """Give a pinned chart another title or another place."""
        return self._ask(
            models.ChartSummary, "PATCH", "/api/v1/boards/{board_id}/charts/{chart_id}", locals(), repeatable=True
        )

    def remove_chart(self, board_id: UUID, chart_id: int) -> models.ChartSummary:
        """Take a chart off a board; what it was is the answer."""
        return self._ask(models.ChartSummary, "DELETE", "/api/v1/boards/{board_id}/charts/{chart_id}", locals())

    def create_job(self, statement: models.JobRequest, *, force: bool | None = None) -> models.JobDetail:
        """Queue work: a suite at a commit, or two commits compared.

        Asking twice gives the same job.

        A commit of a fork makes the job untrusted: it waits for `POST /jobs/{job_id}/approve`.
        """
        return self._ask(models.JobDetail, "POST", "/api/v1/jobs", locals())

    def list_jobs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        project: str | None = None,
        commit: str | None = None,
        state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"] | None = None,
        suite: str | None = None,
        kind: Literal["run", "compare"] | None = None,
        origin: Literal["asked", "backfill", "idle", "confirm", "bisect", "anchor"] | None = None,
        machine_id: int | None = None,
        awaits_approval: bool | None = None,
    ) -> models.PageOfJobSummary:
        """Jobs, newest first, by any of their properties."""
        return self._ask(models.PageOfJobSummary, "GET", "/api/v1/jobs", locals())

    def read_job(self, job_id: int) -> models.JobDetail:
        """A job with its attempts and its result."""
        return self._ask(models.JobDetail, "GET", "/api/v1/jobs/{job_id}", locals())

    def change_job(self, job_id: int, statement: models.JobChange) -> models.JobDetail:
        """Change the priority of a job that has not ended."""
        return self._ask(models.JobDetail, "PATCH", "/api/v1/jobs/{job_id}", locals(), repeatable=True)

    def cancel_job(self, job_id: int) -> models.JobDetail:
        """Cancel a job: a waiting one at once, a running one at its next heartbeat; one that has ended otherwise is a conflict."""
        return self._ask(models.JobDetail, "POST", "/api/v1/jobs/{job_id}/cancel", locals(), repeatable=True)

    def retry_job(self, job_id: int) -> models.JobDetail:
        """Queue a failed, lost or cancelled job again, with three more attempts; its history stays.

        One that pauses after a failed attempt pauses no longer. One that waits or runs stays as it is, so repeating the
        request is harmless; one that is done, or being cancelled, is a conflict.
        """
        return self._ask(models.JobDetail, "POST", "/api/v1/jobs/{job_id}/retry", locals(), repeatable=True)

    def approve_job(self, job_id: int) -> models.JobDetail:
        """Let a fork's code run: an untrusted job, on a machine that accepts untrusted ones and on no other.

        Look at the commit first. Trusted and approved jobs stay as they are; one that has ended is a conflict.
        """
        return self._ask(models.JobDetail, "POST", "/api/v1/jobs/{job_id}/approve", locals(), repeatable=True)

    def read_log(
        self, job_id: int, *, offset: int | None = None, attempt: int | None = None, wait_s: float | None = None
    ) -> Content:
        """The log from a byte offset on, as it was sent, at most a mebibyte at once.

        `Pullback-Next-Offset` is where to read on; `Pullback-Log-Complete: true` says that nothing will follow. To
        follow a log while it is written, ask again from there with `wait_s`: the answer comes with the next bytes, or
        when the attempt has ended. Where `Pullback-Job-State` is then `queued`, `leased` or `running`, the attempt with
        the next number follows.
        """
        return self._fetch("GET", "/api/v1/jobs/{job_id}/log", locals(), waits_s=wait_s or 0.0)

    def heartbeat(self, job_id: int, number: int, statement: models.Heartbeat) -> models.HeartbeatAnswer:
        """Renew a lease, say how far the work is, and learn whether to go on."""
        return self._ask(
            models.HeartbeatAnswer,
            "POST",
            "/api/v1/jobs/{job_id}/attempts/{number}/heartbeat",
            locals(),
            repeatable=True,
        )

    def append_log(self, job_id: int, number: int, content: Body, *, offset: int, lease: UUID) -> models.LogReceipt:
        """Store a piece of the log. A 416 says by `expected_offset` where to go on."""
        return self._ask(
            models.LogReceipt, "PUT", "/api/v1/jobs/{job_id}/attempts/{number}/log", locals(), repeatable=True
        )

    def report_result(
        self, job_id: int, number: int, content: Body, *, lease: UUID, idempotency_key: str | None = None
    ) -> models.JobReceipt:
        """Store the result of an attempt, measured on the machine that was given it.

        That of an attempt whose lease was lost is stored too: as `late` while another attempt runs, and where the job
        is done or cancelled; otherwise it is accepted, and the job is done. A late report is accepted when the running
        attempt ends without a result.
        """
        return self._ask(
            models.JobReceipt, "POST", "/api/v1/jobs/{job_id}/attempts/{number}/report", locals(), repeatable=True
        )

    def fail_attempt(self, job_id: int, number: int, statement: models.FailureStatement) -> models.FailureAnswer:
        """End an attempt without a result. Only `infra` faults called retryable are tried again, after a pause."""
        return self._ask(
            models.FailureAnswer, "POST", "/api/v1/jobs/{job_id}/attempts/{number}/fail", locals(), repeatable=True
        )

    def create_backfill(self, statement: models.BackfillRequest) -> models.BackfillAnswer:
        """Queue jobs for commits of a branch that have no results of a suite, behind everything else that waits.

        Asking again makes nothing twice: at most `limit` of these jobs are under way at once.
        """
        return self._ask(models.BackfillAnswer, "POST", "/api/v1/backfills", locals(), repeatable=True)

    def enroll_agent(self, statement: models.Enrolment) -> models.EnrolmentAnswer:
        """Become an agent; the same name on the same machine is the same agent again.

        With an enrolment code instead of a token the answer holds the agent's own token, this once.
        """
        return self._ask(models.EnrolmentAnswer, "POST", "/api/v1/agents/enroll", locals())

    def list_agents(self, *, limit: int | None = None, cursor: str | None = None) -> models.PageOfAgentSummary:
        """Agents in the order of their enrolment, and what they are doing."""
        return self._ask(models.PageOfAgentSummary, "GET", "/api/v1/agents", locals())

    def claim_job(self, agent_id: int, request: models.ClaimRequest) -> models.Claim | None:
        """Ask for a job and wait for one up to `wait_s`. No database connection is held while waiting."""
        return self._ask_or_none(
            models.Claim,
            "POST",
            "/api/v1/agents/{agent_id}/claim",
            locals(),
            repeatable=True,
            waits_s=request.wait_s or 0.0,
        )

    def create_token(self, statement: models.TokenRequest) -> models.NewToken:
        """Make a token. The answer is the only place its secret is ever shown."""
        return self._ask(models.NewToken, "POST", "/api/v1/tokens", locals())

    def list_tokens(self, *, limit: int | None = None, cursor: str | None = None) -> models.PageOfTokenSummary:
        """Tokens without their secrets, oldest first, revoked ones too; with a token of one project those of that project."""
        return self._ask(models.PageOfTokenSummary, "GET", "/api/v1/tokens", locals())

    def revoke_token(self, token_id: int) -> models.TokenSummary:
        """End a token at once, and all logins made with it. Ending it again changes nothing."""
        return self._ask(models.TokenSummary, "POST", "/api/v1/tokens/{token_id}/revoke", locals(), repeatable=True)

    def create_enrolment_code(self, statement: models.CodeRequest) -> models.NewCode:
        """Make a code with which one agent introduces itself once. It then has a token of its own."""
        return self._ask(models.NewCode, "POST", "/api/v1/enrolments", locals())

    def tell_who_asks(self) -> models.Whoami:
        """Describe the token of the request: to try out a token, and to see its scopes."""
        return self._ask(models.Whoami, "GET", "/api/v1/whoami", locals())

    def list_audit_lines(
        self, *, project: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> models.PageOfAuditLine:
        """List writes, newest first, with their callers."""
        return self._ask(models.PageOfAuditLine, "GET", "/api/v1/audit", locals())

    def list_channels(
        self, *, project: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> models.PageOfChannelSummary:
        """Channels in the order of their making, without their secrets."""
        return self._ask(models.PageOfChannelSummary, "GET", "/api/v1/channels", locals())

    def create_channel(self, statement: models.ChannelRequest) -> models.NewChannel:
        """Make a channel. The answer is the only place where the secret of a webhook is ever shown."""
        return self._ask(models.NewChannel, "POST", "/api/v1/channels", locals())

    def remove_channel(self, channel_id: int) -> models.ChannelSummary:
        """Remove a channel, with what is known of its deliveries; what it was is the answer."""
        return self._ask(models.ChannelSummary, "DELETE", "/api/v1/channels/{channel_id}", locals())

    def test_channel(self, channel_id: int) -> models.DeliverySummary:
        """Send a test on a channel; its deliveries show the answer.

        One that was switched off is on again when a test arrives.
        """
        return self._ask(models.DeliverySummary, "POST", "/api/v1/channels/{channel_id}/test", locals())

    def list_deliveries(
        self, channel_id: int, *, limit: int | None = None, cursor: str | None = None
    ) -> models.PageOfDeliverySummary:
        """Messages of a channel with their answers, newest first."""
        return self._ask(models.PageOfDeliverySummary, "GET", "/api/v1/channels/{channel_id}/deliveries", locals())

    def report_status(self) -> models.Status:
        """Report the state of the service: chores, jobs, leases; and sentences about what needs attention, with remedies."""
        return self._ask(models.Status, "GET", "/status", locals())

    def report_liveness(self) -> models.Health:
        """The process answers. Nothing else is looked at: a database that is away is no reason to restart us."""
        return self._ask(models.Health, "GET", "/healthz", locals())

    def report_readiness(self) -> models.Health:
        """The process goes on, and the database answers and has the shape this release works with; asked once a second at most."""
        return self._ask(models.Health, "GET", "/readyz", locals())

    def report_metrics(self) -> Content:
        """Figures in Prometheus' text format; of jobs, those of the caller's projects."""
        return self._fetch("GET", "/metrics", locals())
