# step NAME COMMAND...: runs a step of a check with no standard input, keeps its output in build/ci
# and its time for print_summary. A step that fails ends the whole check. Sourced by run and nightly.
mkdir -p build/ci
step_times=()
step_log=

step() {
  local name=$1 began=$SECONDS
  shift
  step_log=build/ci/$(printf '%02d' ${#step_times[@]})-${name//[^A-Za-z0-9]/-}.log
  printf '\n=== %s\n' "$name"
  if ! run_and_keep "$@"; then
    printf '\n=== FAILED: %s, after %d s; its output is in %s\n' "$name" $((SECONDS - began)) "$step_log"
    exit 1
  fi
  step_times+=("$(printf '%5d s  %s' $((SECONDS - began)) "$name")")
}

# In a shell of its own with -e, which an `if` around a function would switch off.
run_and_keep() {
  (
    set +e
    (set -e; "$@") </dev/null 2>&1 | tee "$step_log"
    exit "${PIPESTATUS[0]}"
  )
}

# Ends with what ctest itself said of each suite.
print_summary() {
  printf '\n=== passed in %d s\n' "$SECONDS"
  printf '%s\n' "${step_times[@]}"
  grep --no-filename 'tests passed' build/ci/*.log
}
