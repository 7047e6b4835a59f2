# step NAME COMMAND...: runs a step of a check with no standard input, keeps its output in build/ci
# and its time for print_summary. A step that fails ends the whole check. Sourced by run and nightly.
mkdir -p build/ci
step_times=()

step() {
  local name=$1 began=$SECONDS log status
  shift
  log=build/ci/$(printf '%02d' ${#step_times[@]})-${name//[^A-Za-z0-9]/-}.log
  printf '\n=== %s\n' "$name"
  # Not within an `if`, where bash ignores -e even in a function that a subshell runs.
  set +e
  (set -e; "$@") </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  set -e
  if [ "$status" -ne 0 ]; then
    printf '\n=== FAILED: %s, after %d s; its output is in %s\n' "$name" $((SECONDS - began)) "$log"
    exit 1
  fi
  step_times+=("$(printf '%5d s  %s' $((SECONDS - began)) "$name")")
}

# Ends with what the test runners themselves said of each suite.
print_summary() {
  printf '\n=== passed in %d s\n' "$SECONDS"
  printf '%s\n' "${step_times[@]}"
  grep --no-filename -E 'tests passed|\[  PASSED  \]|executions$' build/ci/*.log
}
