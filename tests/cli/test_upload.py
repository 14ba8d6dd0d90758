"""`pullback upload`, as far as it goes without a service."""


def test_files_are_read_before_anything_is_sent(command, tmp_path):
    (tmp_path / "report.json").write_text("{}")
    done = command("upload", "report.json", "gone.json", "--server", "http://127.0.0.1:9", folder=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "gone.json cannot be read (No such file or directory); name a file or folder of a tool" in line
