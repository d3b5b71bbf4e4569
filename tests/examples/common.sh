# What the tests of the examples share. Each test is `bash x.sh BIN`, with the folder of the programs; it works in a fresh
# folder and sets no time limit.
set -u
bin=$(cd "$1" && pwd)
here=$(mktemp -d "${TMPDIR:-/tmp}/linnet-examples.XXXXXX")
background=
cleanup() {
  [ $BASHPID = $$ ] || return  # a background shell that was killed before it became the program
  [ -z "$background" ] || kill -KILL "$background" 2>/dev/null
  cd / && rm -rf "$here"
}
trap cleanup EXIT
cd "$here" || exit 1

# A model that trains in moments; steps, out and the like are added by the caller.
small=(--layers 1 --heads 2 --dim 16 --length 12 --symbols 4 --batch 8 --threads 1)
copy_task() { "$bin/copy_task" "$@"; }

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# runs COMMAND...: it must succeed; its output is in log.
runs() { "$@" >log 2>&1 || { cat log >&2; fail "exit code $? from: $*"; }; }

# refused PATTERN COMMAND...: it must fail with a message that matches, and not by a signal.
refused() {
  local pattern=$1 code
  shift
  "$@" >log 2>&1
  code=$?
  [ $code -ne 0 ] || fail "no error from: $*"
  [ $code -lt 126 ] || { cat log >&2; fail "exit code $code from: $*"; }
  grep -qE -- "$pattern" log || { cat log >&2; fail "no message matching '$pattern' from: $*"; }
}

same_files() { cmp "$1" "$2" || fail "$1 and $2 differ"; }
# same_metrics A B: equal but for the columns that hold times.
same_metrics() {
  cmp <(cut -d, -f1-5 "$1/metrics.csv") <(cut -d, -f1-5 "$2/metrics.csv") || fail "the metrics of $1 and $2 differ"
}
# wait_for COMMAND...: until it succeeds, while the background program lives.
wait_for() {
  until "$@" 2>/dev/null; do
    kill -0 "$background" 2>/dev/null || { cat log >&2; fail "the program ended before: $*"; }
    sleep 0.02
  done
}

# stop_and_resume PROGRAM FOLDER: the run in the background is killed at random moments, then stopped by signals, and
# resumed each time, until it ends by itself.
stop_and_resume() {
  local i signal code
  wait_for [ -s "$2/checkpoint.safetensors" ]
  for i in 1 2 3 4 5 6; do
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    signal=KILL
    [ $i -gt 3 ] && signal=INT
    kill -$signal $background 2>/dev/null || break
    wait $background 2>/dev/null
    code=$?
    [ $signal = KILL ] || [ $code = 130 ] || [ $code = 0 ] || { cat log; fail "SIGINT: exit code $code"; }
    [ $code = 130 ] && { grep -q "$1 --resume $2 goes on" log || { cat log; fail "no word on how to go on"; }; }
    "$bin/$1" --resume "$2" >log 2>&1 &
    background=$!
  done
  wait $background || { cat log >&2; fail "the resumed run"; }
  background=
}

# same_runs A B: model, metrics, and the first $validated columns of the validation.
same_runs() {
  same_files "$1/model.safetensors" "$2/model.safetensors" && same_metrics "$1" "$2"
  cmp <(cut -d, -f1-$validated "$1/validation.csv") <(cut -d, -f1-$validated "$2/validation.csv") ||
    fail "validations of $1 and $2 differ"
}
