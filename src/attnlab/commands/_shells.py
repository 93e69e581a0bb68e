"""Completion in bash, zsh and fish: click's, with scripts that know words such as attention=none,dot.

Readline breaks words at the equals sign, click's script for fish cuts a word at its first comma, and no space belongs after
what goes on, such as ``attention=``.
"""

import os

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
    split_arg_string,
)
from typing_extensions import override

BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} word kept answer type value
    word=${line##*[[:space:]]}
    [[ $current == [=:] ]] && current=
    kept=${word%%"$current"}  # what readline does not replace
    COMPREPLY=()
    for answer in $(env COMP_WORDS="$line" %(complete_var)s=bash_complete "$1" 2>/dev/null); do
        type=${answer%%%%,*} value=${answer#*,}
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                answer=${value#"$kept"}
                COMPREPLY+=("${answer// /\\ }")
                [[ $value == *[=./,] ]] && compopt -o nospace ;;
        esac
    done
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a described open closed response
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete \
%(prog_name)s 2>/dev/null)}")
    for type key descr in ${response}; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain)
                if [[ $descr != _ ]]; then described+=("$key:$descr")
                elif [[ $key == *[=./,] ]]; then open+=("$key")
                else closed+=("$key")
                fi ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#open )) && compadd -U -S '' -V unsorted -a open
    (( $#closed )) && compadd -U -V unsorted -a closed
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

FISH = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) \
%(prog_name)s 2>/dev/null)
    for answer in $response
        set -l parts (string split -m 1 "," -- $answer)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class Bash(BashComplete):
    """Bash, told of the whole line instead of the words that readline makes of it."""

    source_template = BASH

    @override
    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete


class Zsh(ZshComplete):
    """Zsh."""

    source_template = ZSH


class Fish(FishComplete):
    """Fish."""

    source_template = FISH


SHELLS = {shell.name: add_completion_class(shell) for shell in (Bash, Zsh, Fish)}


def script(shell: str, variable: str) -> str:
    """Return what a shell is to evaluate.

    Args:
        shell: one of :data:`SHELLS`.
        variable: by which the shell asks.
    """
    return SHELLS[shell](click.Group(), {}, "attnlab", variable).source()


def answer(command: click.Command, variable: str) -> int:
    """Answer what a shell asks through a variable; returns the exit status."""
    try:
        return shell_complete(command, {}, "attnlab", variable, os.environ[variable])
    except Exception:  # nobody completes anything with a traceback
        return 1
