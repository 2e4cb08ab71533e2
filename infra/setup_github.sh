#!/usr/bin/env bash
# Bring this repository's variables and secrets on GitHub to what a filled-in copy of settings.example.env says.
#
#   infra/setup_github.sh infra/settings.env                  shows what it would do
#   infra/setup_github.sh infra/settings.env --apply          does it
#   ... --environment staging                                 for one environment instead of the whole repository
#
# Only what differs from the defaults is set, so that defaults of later versions arrive; a variable that is back at its
# default is deleted. Secrets go to gh through a pipe, never onto a command line, and are shown nowhere.
set -euo pipefail

usage() {
  echo "usage: infra/setup_github.sh FILE [--environment NAME] [--apply]" >&2
  exit 2
}

fail() {
  echo "$*" >&2
  exit 2
}

file='' environment='' apply=false
while [[ $# -gt 0 ]]; do
  case $1 in
    --apply) apply=true ;;
    --environment)
      [[ $# -ge 2 ]] || usage
      environment=$2
      shift
      ;;
    -*) usage ;;
    *)
      [[ -z $file ]] || usage
      file=$1
      ;;
  esac
  shift
done
[[ -n $file ]] || usage
[[ -r $file ]] || fail "$file cannot be read"
example=$(dirname "${BASH_SOURCE[0]}")/settings.example.env
[[ ! $file -ef $example ]] || fail "copy $example first, so that nobody commits a key: cp $example infra/settings.env"
command -v gh >/dev/null || fail "gh is not there: https://cli.github.com"

# GitHub looks at these before it enters an environment, so an environment's own value would not be seen.
whole_repository=' DEPLOY_TO DEPLOY_ARCHITECTURE '

declare -A default secret wanted
hidden=false
while IFS= read -r line || [[ -n $line ]]; do
  case $line in
    '# secrets:'*) hidden=true ;;
    '' | '#'*) ;;
    *)
      default[${line%%=*}]=${line#*=}
      secret[${line%%=*}]=$hidden
      ;;
  esac
done <"$example"

number=0
while IFS= read -r line || [[ -n $line ]]; do
  number=$((number + 1))
  line=${line%$'\r'}
  [[ -n $line && $line != '#'* ]] || continue
  name=${line%%=*}
  # Not repeated: a line without a name may be the second half of a key.
  [[ $line == *=* && $name =~ ^[A-Z][A-Z0-9_]*$ ]] || fail "$file, line $number: not NAME=value"
  [[ -n ${secret[$name]+known} ]] || fail "$file, line $number: there is no setting $name"
  wanted[$name]=${line#*=}
done <"$file"

# Runs a command, or says that it would. What is shown is safe to be shown: secrets come by standard input.
run() {
  if $apply; then
    "$@"
  else
    printf 'would run:'
    printf ' %q' "$@"
    printf '\n'
  fi
}

# The names that GitHub has, one a line; $1: variable or secret, then gh's options.
there() {
  gh "$1" list "${@:2}" --json name --jq '.[].name'
}

in_environment=()
if [[ -n $environment ]]; then
  in_environment=(--env "$environment")
  run gh api --method PUT --silent "repos/{owner}/{repo}/environments/$environment"
fi
variables=$(there variable)
variables_here=$variables
secrets_here=$(there secret)
if [[ -n $environment ]]; then
  # A new environment has none yet, and in a dry run it may not exist.
  variables_here=$(there variable "${in_environment[@]}" 2>/dev/null || true)
  secrets_here=$(there secret "${in_environment[@]}" 2>/dev/null || true)
fi

changes=0
for name in $(printf '%s\n' "${!default[@]}" | sort); do
  value=${wanted[$name]-${default[$name]}}
  where=("${in_environment[@]}") present=$variables_here
  if [[ $whole_repository == *" $name "* ]]; then
    where=() present=$variables
  fi
  if ${secret[$name]}; then
    if [[ -n $value ]]; then
      # Not `printf | run`: a dry run reads nothing, and the pipe that breaks then would end the script.
      run gh secret set "$name" "${where[@]}" < <(printf '%s' "$value")
      changes=$((changes + 1))
    elif ! grep -qx "$name" <<<"$secrets_here"; then
      echo "not set: secret $name"
    fi
  elif [[ $value != "${default[$name]}" ]]; then
    run gh variable set "$name" "${where[@]}" --body "$value"
    changes=$((changes + 1))
  elif grep -qx "$name" <<<"$present"; then
    run gh variable delete "$name" "${where[@]}"
    changes=$((changes + 1))
  fi
done

if $apply; then
  echo "$changes changes made"
else
  echo "$changes changes; nothing was done: add --apply"
fi
