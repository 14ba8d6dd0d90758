"""The command as GradBench starts it: a process, two pipes, nothing but answers on standard output."""

import json
import os
import signal
import subprocess
import sys

import pytest

from pullback_cli.main import main

COMMAND = [sys.executable, "-P", "-m", "pullback_cli", "gradbench", "--tier", "fused"]
SQUARE = {"kind": "evaluate", "module": "hello", "function": "square", "input": 3.0}


@pytest.fixture
def tool():
    # A shell that starts something in the background has it ignore interrupts, and whatever that starts: so these tests.
    outer = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        signal.signal(signal.SIGINT, outer)
        yield process
        process.kill()


def ask(tool, message):
    tool.stdin.write(json.dumps(message).encode() + b"\n")
    tool.stdin.flush()
    return json.loads(tool.stdout.readline())


@pytest.mark.long
def test_a_conversation_from_start_to_end_of_input(tool):
    assert ask(tool, {"id": 0, "kind": "start", "eval": "hello"})["config"]["threads"] == 1
    assert ask(tool, {"id": 1, "kind": "define", "module": "hello"})["success"] is True
    assert ask(tool, {"id": 2, **SQUARE})["output"] == 9.0
    assert ask(tool, {"id": 3, "kind": "analysis", "of": 2, "valid": True}) == {"id": 3}
    # A line of 8 MB, both ways: the output is as long as the input.
    long = ask(
        tool,
        {"id": 4, "kind": "evaluate", "module": "lse", "function": "gradient", "input": {"x": [0.123456789] * 700_000}},
    )
    assert len(long["output"]) == 700_000
    rest, said = tool.communicate()
    assert (tool.returncode, rest, said) == (0, b"", b"")


def test_an_interrupt_ends_it_without_a_traceback(tool):
    ask(tool, {"id": 0, "kind": "start"})
    tool.send_signal(signal.SIGINT)
    rest, said = tool.communicate()
    assert (tool.returncode, rest, said) == (130, b"", b"")


def test_it_ends_in_order_when_nobody_reads_any_more(tool):
    ask(tool, {"id": 0, "kind": "start"})
    tool.stdout.close()
    tool.stdin.write(b'{"id": 1, "kind": "start"}\n' * 3)
    tool.stdin.close()
    assert tool.wait() == 0
    assert tool.stderr.read() == b""


def test_what_else_is_printed_goes_to_standard_error():
    program = (
        "import os\n"
        "from pullback_runners.gradbench import private_streams\n"
        "with private_streams() as (lines, answers):\n"
        "    print('from Python')\n"
        "    os.write(1, b'from C\\n')\n"
        "    os.system('echo from a shell')\n"
        "    assert os.read(0, 10) == b''\n"
        "    answers.write(lines.readline())\n"
        "print('afterwards')\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], input=b"a message\n", capture_output=True, check=True)
    assert done.stdout == b"a message\nafterwards\n"
    assert sorted(done.stderr.split(b"\n")) == [b"", b"from C", b"from Python", b"from a shell"]


@pytest.mark.parametrize(
    ("arguments", "reason"), [(["--device", "cuda"], "'cuda'"), (["--tier", "fastest"], "'fastest'")]
)
def test_what_is_not_there_is_refused_in_a_sentence(arguments, reason, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pullback", "gradbench", *arguments])
    monkeypatch.setattr("pullback_cli.main.die_with_named_parent", lambda: None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PULLBACK_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err
