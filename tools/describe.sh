#!/bin/sh
# tools/describe.sh PROGRAM FOLDER: writes the manual pages and completions that the program warploom prints of itself into
# FOLDER/man1, FOLDER/bash, FOLDER/zsh and FOLDER/fish.
set -eu
program=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder/man1" "$folder/bash" "$folder/zsh" "$folder/fish"
"$program" manual > "$folder/man1/warploom.1"
sed -n '/^\.SH COMMANDS/,/^\.SH OPTIONS/ s/^\\fB\(.*\)\\fR$/\1/p' "$folder/man1/warploom.1" | while read -r command; do
  "$program" manual "$command" > "$folder/man1/warploom-$command.1"
done
"$program" completion bash > "$folder/bash/warploom"
"$program" completion zsh > "$folder/zsh/_warploom"
"$program" completion fish > "$folder/fish/warploom.fish"
