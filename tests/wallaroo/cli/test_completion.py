"""Completion, asked of real shells."""

import functools
import os
import shutil

import pytest
from running import ran, wallaroo

pytest.importorskip("shtab")

LINES = {
    "wallaroo co": {"compare", "conform"},
    "wallaroo run --std": {"--stdin", "--stdout"},
    "wallaroo run --engine comp": {"compiled"},
    "wallaroo --log-level de": {"debug"},
    "wallaroo check my_": {"my_app.py"},
}

ASK = {
    "bash": """
source ./script
COMP_WORDS=(LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$(complete -p wallaroo | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
""",
    "fish": "source ./script; complete -C 'LINE' | string split -f1 \\t",
}


@functools.cache
def completion(shell):
    return wallaroo("--completion", shell, data="").stdout


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize("line", LINES)
def test_a_shell_completes(tmp_path, shell, line):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(completion(shell))
    (tmp_path / "my_app.py").touch()
    done = ran(
        [shell, "-c", ASK[shell].replace("LINE", line)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert set(done.stdout.split()) == LINES[line], done.stderr


def test_zsh_takes_the_script(tmp_path):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    (tmp_path / "script").write_text(completion("zsh"))
    done = ran(
        [
            "zsh",
            "-f",
            "-c",
            'autoload -Uz compinit; compinit -u -D; eval "$(cat script)"; print $_comps[wallaroo]',
        ],
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("_shtab_wallaroo\n", "")


def test_another_shell_is_refused():
    done = wallaroo("--completion", "tcl", data="")
    assert done.returncode == 2
    assert "'bash', 'zsh', 'fish'" in done.stderr
