#!/bin/bash
# The tests: `deploy/test.sh [--coverage] [pytest arguments]`. Its last lines are pytest's own summary of everything.
set -uo pipefail
bin=.venv/bin

# Images of Python often say that no bytecode is written: hundreds of processes are started here, and each would compile
# every module of ours that it imports, the service's for a third of a second.
unset PYTHONDONTWRITEBYTECODE

# Coverage's tracer costs the tests nearly as much processor time again, so it is a run of its own: `make coverage`.
coverage=
if [ "${1:-}" = --coverage ]; then
    coverage=yes
    shift
fi

# Browser tests need a Chromium: the system's, else Debian's, else Playwright's own, else they skip themselves; CI fails then.
# The one without windows takes a third less processor time.
chromium=$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "pullback: installing Chromium for the browser tests"
    if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium >/dev/null; then
        chromium=$(command -v chromium || true)
    fi
fi
if [ -z "$chromium" ] && $bin/playwright install chromium >/dev/null 2>&1; then
    chromium=$($bin/python -c 'from playwright.sync_api import sync_playwright as p
with p() as playwright: print(playwright.chromium.executable_path)')
fi
if [ -z "$chromium" ]; then
    echo "pullback: NO CHROMIUM on this machine and none could be installed: THE BROWSER TESTS ARE SKIPPED" >&2
    [ -z "${CI:-}" ] || exit 1
fi
export PULLBACK_CHROMIUM=$chromium

# One invocation, so that one summary speaks for all.
report=$(mktemp)
trap 'rm -f "$report"' EXIT
if [ -n "$coverage" ]; then
    $bin/coverage erase
    export COVERAGE_PROCESS_START=$PWD/pyproject.toml
fi
# Four workers on two processors: tests of the whole product wait for processes they started more often than they compute.
$bin/pytest -n 4 --dist worksteal --durations 40 --durations-min 5 "$@" 2>&1 | tee "$report"
status=$?
unset COVERAGE_PROCESS_START

if [ -n "$coverage" ]; then
    # Of the tests' own processes; what the system tests start is not measured, so the daemons look barer than they are.
    $bin/coverage combine --quiet && $bin/coverage report
fi
echo
# pytest's summary once more, so that what closes the output says how it went.
sed -n '/^=* short test summary info/,$p' "$report" | grep . || tail -n 1 "$report"
exit $status
