"""`unseam completion SHELL`: a script that completes verbs and flags; printed once, nothing runs while you type."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

import tyro

from unseam.cli.common import flags_of

BASH = """_unseam() {
  local word=${COMP_WORDS[COMP_CWORD]} words=
  if (( COMP_CWORD == 1 )); then words="%(verbs)s"
  elif [[ $word == -* ]]; then case ${COMP_WORDS[1]} in
%(cases)s
  esac; fi
  COMPREPLY=( $(compgen -W "$words" -- "$word") )
}
complete -o default -F _unseam unseam
"""


@dataclass
class Command:
    """Print a script that completes verbs and flags; other words are completed as files.

    For bash: unseam completion bash > ~/.local/share/bash-completion/completions/unseam
    For zsh: unseam completion zsh >> ~/.zshrc
    For fish: unseam completion fish > ~/.config/fish/completions/unseam.fish

    Example: unseam completion bash
    """

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]]
    """Which shell."""

    def run(self) -> None:
        print(script(self.shell), end="")


def script(shell: str) -> str:
    from unseam.cli import VERBS

    known = {verb: _flags(module) for verb, (module, _) in VERBS.items()}
    if shell == "fish":
        about = {verb: text.replace("'", "\\'") for verb, (_, text) in VERBS.items()}
        verbs = [f"complete -c unseam -n __fish_use_subcommand -f -a {verb} -d '{about[verb]}'" for verb in known]
        each = [f"complete -c unseam -n '__fish_seen_subcommand_from {verb}' -l {flag[2:]}"
                for verb, some in known.items() for flag in some]  # fmt: skip
        return "\n".join([*verbs, *each]) + "\n"
    cases = "\n".join(f'    {verb}) words="{" ".join(some)}" ;;' for verb, some in known.items())
    text = BASH % {"verbs": " ".join([*known, "help", "--version"]), "cases": cases}
    return text if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{text}"


def _flags(module: str) -> list[str]:
    """The flags of a verb, those of its own verbs and of objectives among them."""
    command = import_module(f"unseam.cli.{module}").Command
    own = command.option_names() if hasattr(command, "option_names") else []
    long = {flag for flag in flags_of(command) if flag.startswith("--")}
    return sorted(long | {f"--{name}".replace("_", "-") for name in own})
