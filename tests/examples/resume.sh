# A run that was interrupted and resumed ends with the bits of an undisturbed one, wherever it was interrupted.
source "$(dirname "$0")/common.sh"
steps=1200
runs copy_task "${small[@]}" --steps $steps --lr-drop-at 700 --out whole

# Stopped in good order between two logged steps, then given more steps.
runs copy_task "${small[@]}" --steps 130 --lr-drop-at 700 --out part
runs copy_task --resume part --steps $steps
same_files whole/model.safetensors part/model.safetensors
same_metrics whole part

# The same into another folder, which leaves the first alone.
runs copy_task "${small[@]}" --steps 130 --lr-drop-at 700 --out start
before=$(cd start && cat ./* | cksum)
runs copy_task --resume start --steps $steps --out elsewhere
same_files whole/model.safetensors elsewhere/model.safetensors
same_metrics whole elsewhere
[ "$before" = "$(cd start && cat ./* | cksum)" ] || fail "--resume with --out changed the first folder"

# SIGKILL at random moments, until it ends by itself.
"$bin/copy_task" "${small[@]}" --steps $steps --lr-drop-at 700 --out killed >log 2>&1 &
background=$!
wait_for [ -s killed/checkpoint.safetensors ]
kills=0
while [ $kills -lt 5 ]; do
  sleep "0.0$((RANDOM % 10))"
  kill -KILL $background 2>/dev/null || break
  wait $background 2>/dev/null
  kills=$((kills + 1))
  "$bin/copy_task" --resume killed >log 2>&1 &
  background=$!
done
wait $background || { cat log >&2; fail "the resumed run"; }
background=
echo "killed $kills times"
runs copy_task --resume killed
same_files whole/model.safetensors killed/model.safetensors
same_metrics whole killed
[ -z "$(find killed -name '*.tmp*')" ] || fail "a temporary file stayed"

# SIGINT and SIGTERM: a checkpoint, a word on how to go on, exit code 130.
for signal in INT TERM; do
  rm -rf stopped log
  # A shell starts background jobs with SIGINT ignored; the program catches it all the same.
  "$bin/copy_task" "${small[@]}" --steps 1000000 --lr-drop-at 700 --out stopped >log 2>&1 &
  background=$!
  wait_for grep -q '^step' log
  kill -$signal $background
  wait $background
  code=$?
  background=
  [ $code = 130 ] || { cat log >&2; fail "SIG$signal: exit code $code"; }
  grep -q 'copy_task --resume stopped goes on' log || fail "SIG$signal: no word on how to go on"
  stopped_at=$(sed -n 's/^Stopped after step \([0-9,]*\);.*/\1/p' log | tr -d ,)
  [ -n "$stopped_at" ] || fail "SIG$signal: at which step?"
  runs copy_task --resume stopped --steps $((stopped_at + 1))
  grep -q 'Going on from step' log || fail "it does not say where it goes on"
done

# A run that has ended stays as it is, and a smaller --steps is refused.
runs copy_task --resume whole
grep -q 'has done its 1,200 steps' log || fail "a finished run should say so"
same_metrics whole part
refused '--steps 50: the run in whole is at step 1200' copy_task --resume whole --steps 50
refused '--resume may change only --steps, --threads, --device and --out' copy_task --resume whole --dim 32
refused '--resume may change only' copy_task --resume whole --seed 2
refused '--resume may change only' copy_task --resume whole --lr 0.5
refused '--resume may change only' copy_task --resume whole --attention softmax
refused '--paper' copy_task --resume whole --paper
refused 'whole: holds a run already' copy_task "${small[@]}" --out whole
