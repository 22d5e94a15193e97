import os
import subprocess
import sys


def completions(words, shell="bash"):
    """What a shell is offered behind these words."""
    line = " ".join(["anybatch", *words])
    asking = {
        "_ANYBATCH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": line,
    }
    ended = subprocess.run(
        [sys.executable, "-m", "anybatch"],
        env=os.environ | asking,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout


def test_a_shell_is_offered_commands_and_their_options():
    assert completions(["ver"]).split() == ["verify"]
    assert completions(["verify", "--tr"]).split() == ["--trust-index"]


def test_bash_gets_a_script_that_asks_anybatch():
    asked = f'eval "$({sys.executable} -m anybatch --show-completion)"; complete -p anybatch'
    ended = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "-F _anybatch_completion anybatch" in ended.stdout
