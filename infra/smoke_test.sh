#!/usr/bin/env bash
# After a deployment: is what was deployed alive, and closed to strangers? Costs a few invocations, wakes no GPU.
#
#   DEPLOY_STACK=wikikeeper infra/smoke_test.sh aws
#   WIKIKEEPER_LLAMA__BASE_URL=https://... infra/smoke_test.sh modal       DEPLOY_TO=modal-functions: their tick as well
set -euo pipefail

fail() {
  echo "$*" >&2
  exit 1
}

# What a page answers to a stranger; $1: its address, $2: the status that it must have.
answers() {
  local status
  status=$(curl --silent --show-error --max-time 60 --output /dev/null --write-out '%{http_code}' "$1")
  [[ $status == "$2" ]] || fail "$1 answers $status to a stranger; it must be $2"
}

# Lambda answers 200 whatever happened: a failure shows in FunctionError.
invoke() {
  local function=$1 payload=$2 answer
  answer=$(mktemp)
  if [[ $(aws lambda invoke --function-name "$function" --cli-binary-format raw-in-base64-out --payload "$payload" \
    --query FunctionError --output text "$answer") != None ]]; then
    fail "$function failed: $(cat "$answer")"
  fi
  rm -f "$answer"
  echo "$function answers"
}

case ${1-} in
  aws)
    stack=${DEPLOY_STACK:?}
    # An empty batch starts the container, reads the settings and makes the clients; it does no work.
    for function in judge-result write-note reap-stale; do
      invoke "$stack-$function" '{"Records": []}'
    done
    # The same as the rule does each minute: finds what is due.
    invoke "$stack-schedule-cycle" '{"kind": "tick"}'
    pages=$(aws cloudformation describe-stacks --stack-name "$stack" \
      --query "Stacks[0].Outputs[?OutputKey=='Pages'].OutputValue" --output text)
    if [[ -z $pages ]]; then
      echo "no pages: WIKIKEEPER_WEB__TOKEN is not set"
    else
      # The form is there for everybody, what it leads to for nobody yet.
      answers "${pages%/}/login" 200
      answers "${pages%/}/runs" 303
      echo "$pages serves the pages, and asks who comes"
    fi
    ;;
  modal)
    url=${WIKIKEEPER_LLAMA__BASE_URL-}
    if [[ -z $url ]]; then
      echo "WIKIKEEPER_LLAMA__BASE_URL is not set yet: set it to the address that was printed by the deployment"
      exit 0
    fi
    # Modal's proxy answers for the app, so that strangers start no GPU.
    answers "${url%/}/health" 401
    echo "the model server turns strangers away"
    if [[ ${DEPLOY_TO-} == *modal-functions* ]]; then
      # The same as Modal does each minute: reads the settings, the table and the topics, and finds what is due.
      "${PYTHON:-.venv/bin/python}" -c 'import modal; modal.Function.from_name("wikikeeper", "tick").remote()'
      echo "the functions answer"
    fi
    ;;
  *)
    echo "usage: infra/smoke_test.sh aws|modal" >&2
    exit 2
    ;;
esac
