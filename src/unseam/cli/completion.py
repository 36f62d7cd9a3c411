"""`unseam completion SHELL`: a script that completes verbs, flags and values; printed once, it starts no Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import tyro

from unseam.cli.common import AsJson, actions_of, emit

_BASH = """_unseam() {
  local word=${COMP_WORDS[COMP_CWORD]} words= files=
  if (( COMP_CWORD == 1 )); then words="%(verbs)s"
  else case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}" in
%(values)s
    *) if [[ $word == -* ]]; then case ${COMP_WORDS[1]} in
%(flags)s
      esac
      else case ${COMP_WORDS[1]} in
%(first)s
      esac; files=yes; fi ;;
  esac; fi
  COMPREPLY=( $(compgen -W "$words" -- "$word") )
  if [[ $files && ${#COMPREPLY[@]} == 0 ]]; then COMPREPLY=( $(compgen -f -- "$word") ); fi
}
complete -o filenames -F _unseam unseam
"""
_WORDS = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")  # a metavar that lists the values: adam|adagrad|sgd
_SHORT = ("-h", "-q", "-v")


@dataclass
class Command:
    """Print a script that completes verbs, flags and their values; other words are completed as files.

    For bash: unseam completion bash > ~/.local/share/bash-completion/completions/unseam
    For zsh: unseam completion zsh >> ~/.zshrc
    For fish: unseam completion fish > ~/.config/fish/completions/unseam.fish

    Example: unseam completion bash
    """

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]]
    """Which shell."""
    json: AsJson = False

    def run(self) -> None:
        text = script(self.shell)
        emit({"shell": self.shell, "script": text}) if self.json else print(text, end="")


@dataclass
class _Verb:
    """What can stand behind a verb."""

    flags: dict[str, list[str]] = field(default_factory=dict)  # flag -> its values, none where any will do
    first: list[str] = field(default_factory=list)  # words in the place of its first argument


def script(shell: str) -> str:
    """The completion script of a shell."""
    from unseam.cli import VERBS

    known = {verb: _describe(verb, module) for verb, (module, _) in VERBS.items()}
    known["help"] = _Verb(first=list(VERBS))
    if shell == "fish":
        return _fish(known, {verb: about for verb, (_, about) in VERBS.items()})
    flags = [f'        {verb}) words="{" ".join([*_SHORT, *each.flags])}" ;;' for verb, each in known.items()]
    first = [f'        {verb}) words="{" ".join(each.first)}" ;;' for verb, each in known.items() if each.first]
    values = [
        f'    "{verb} {flag}") words="{" ".join(words)}" ;;'
        for verb, each in known.items()
        for flag, words in each.flags.items()
        if words
    ]
    parts = {"values": values, "flags": flags, "first": first}
    text = _BASH % {"verbs": " ".join([*known, "--version"]), **{name: "\n".join(rows) for name, rows in parts.items()}}
    return text if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{text}"


def _fish(known: dict[str, _Verb], about: dict[str, str]) -> str:
    lines = []
    for verb, each in known.items():
        description = about.get(verb, "show the help of a verb").replace("'", "\\'")
        lines.append(f"complete -c unseam -n __fish_use_subcommand -f -a {verb} -d '{description}'")
        condition = f"complete -c unseam -n '__fish_seen_subcommand_from {verb}'"
        lines += [f"{condition} -a '{' '.join(each.first)}'"] if each.first else []
        for flag, words in each.flags.items():
            lines.append(f"{condition} -l {flag[2:]}" + (f" -x -a '{' '.join(words)}'" if words else ""))
    return "\n".join(lines) + "\n"


def _describe(verb: str, module: str) -> _Verb:
    """The flags and values of a verb, those of its own verbs and of objectives among them."""
    command = import_module(f"unseam.cli.{module}").Command
    found = _Verb(first=_first_words(verb))
    for action in actions_of(command):
        for flag in (flag for flag in action.option_strings if flag.startswith("--")):
            found.flags[flag] = _named_values(flag) or _choices(action)
    for name in _hyperparameters(command):
        found.flags.setdefault(f"--{name}".replace("_", "-"), [])
    found.flags = dict(sorted(found.flags.items()))
    return found


def _hyperparameters(command: Any) -> list[str]:
    """Flags of objectives; none where torch is missing, because nothing can be trained there."""
    try:
        return list(command.option_names()) if hasattr(command, "option_names") else []
    except ImportError:
        return []


def _choices(action: Any) -> list[str]:
    if action.choices:
        return sorted(str(word) for word in action.choices if str(word) != "None")
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return metavar.split("|") if _WORDS.fullmatch(metavar) else []


def _named_values(flag: str) -> list[str]:
    """Values that are names of ours, listed without loading what they name."""
    if flag == "--objective":
        from unseam.objectives.names import OBJECTIVE_CLASSES

        return list(OBJECTIVE_CLASSES)
    if flag == "--metrics":
        from unseam.metrics import METRICS

        return ["all", *METRICS]
    return ["auto", "cpu", "cuda", "mps"] if flag == "--device" else []


def _first_words(verb: str) -> list[str]:
    from unseam.data.names import DATASET_CLASSES

    if verb in ("train", "find", "perturb"):
        return list(DATASET_CLASSES)
    return {
        "data": ["list", "show", "fetch", "pack", *DATASET_CLASSES],
        "study": ["show", "table", "analyse", "minute", "hour", "locatello"],
        "completion": ["bash", "zsh", "fish"],
    }.get(verb, [])
