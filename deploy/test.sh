#!/bin/bash
# The whole test suite: `deploy/test.sh [pytest arguments]`. Its last lines are pytest's own summary of everything.
set -uo pipefail
bin=.venv/bin

# Browser tests need a Chromium: the system's, else Debian's, else Playwright's own, else they skip themselves.
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
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
fi
export PULLBACK_CHROMIUM=$chromium

# One invocation, so that one summary speaks for all; tests marked `serial` wait for the others and have the machine alone.
report=$(mktemp)
trap 'rm -f "$report"' EXIT
$bin/coverage erase
COVERAGE_PROCESS_START=$PWD/pyproject.toml $bin/pytest -n 2 --dist worksteal "$@" 2>&1 | tee "$report"
status=$?

# Of the tests' own processes; what the system tests start is not measured, so the daemons look barer than they are.
$bin/coverage combine --quiet && $bin/coverage report
echo
# pytest's summary once more, so that what closes the output says how it went.
sed -n '/^=* short test summary info/,$p' "$report" | grep . || tail -n 1 "$report"
exit $status
