# Output that goes nowhere: a closed pipe, closed streams. The run ends in good order, and its files hold nothing else.
source "$(dirname "$0")/common.sh"

# The reader goes after one line: a checkpoint, a word on how to go on, an exit code that tells.
"$bin/copy_task" "${small[@]}" --steps 100000000 --out piped 2>log | head -n 1 >/dev/null
code=${PIPESTATUS[0]}
[ $code = 1 ] || { cat log >&2; fail "exit code $code where the pipe is closed"; }
grep -q 'copy_task --resume piped goes on' log || fail "no word on how to go on"
grep -q '^copy_task: the output could not be written' log || fail "the message does not say why"
step=$(sed -n 's/^Stopped after step \([0-9,]*\);.*/\1/p' log | tr -d ,)
[ "$step" -gt 0 ] || fail "it should have stopped after some steps"
runs copy_task --resume piped --steps $((step + 1))
grep -q 'Going on from step' log || fail "the checkpoint is not of the last step"

# No standard streams: their numbers do not pass to the files of the run.
rm log
"$bin/copy_task" "${small[@]}" --steps 100000000 --out closed >log 2>&- &
background=$!
wait_for grep -q '^step' log
kill -TERM $background
wait $background
code=$?
background=
[ $code = 130 ] || fail "exit code $code without standard error"
grep -v '^[0-9][0-9.e+,-]*$' closed/metrics.csv | grep -v '^step,' && fail "a message went into metrics.csv"
closed_output() { "$bin/copy_task" "$@" >&-; }
refused 'the output could not be written' closed_output "${small[@]}" --steps 2 --out silent
