# A language model's run that was stopped and resumed ends with the bits of an undisturbed one, wherever it was stopped.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/language_model_data.sh"
same_validation() {
  cmp <(cut -d, -f1-2 "$1/validation.csv") <(cut -d, -f1-2 "$2/validation.csv") || fail "validations of $1 and $2 differ"
}
same_runs() { same_files $1/model.safetensors $2/model.safetensors && same_metrics $1 $2 && same_validation $1 $2; }
runs language_model "${tiny[@]}" --steps 600 --out whole

# Killed, then stopped by signals, until it ends by itself.
"$bin/language_model" "${tiny[@]}" --steps 600 --out killed >log 2>&1 &
background=$!
wait_for [ -s killed/checkpoint.safetensors ]
for i in 1 2 3 4 5 6; do
  sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
  signal=KILL
  [ $i -gt 3 ] && signal=INT
  kill -$signal $background 2>/dev/null || break
  wait $background 2>/dev/null
  code=$?
  [ $signal = KILL ] || [ $code = 130 ] || [ $code = 0 ] || { cat log; fail "SIGINT: exit code $code"; }
  [ $code = 130 ] && { grep -q 'language_model --resume killed goes on' log || { cat log; fail "how to go on?"; }; }
  "$bin/language_model" --resume killed >log 2>&1 &
  background=$!
done
wait $background || { cat log >&2; fail "the resumed run"; }
background=
same_runs whole killed

# In another folder, from a run that has ended.
runs language_model --resume whole --out elsewhere
same_runs whole elsewhere
same_files whole/characters.txt elsewhere/characters.txt
refused '--steps 500: the run in whole is at step 600 already' language_model --resume whole --steps 500
refused '--resume may change only' language_model --resume whole --dim 32
runs language_model --resume whole --steps 620
grep -q '^620,' whole/metrics.csv || fail "more steps"

# A checkpoint that was cut off: the one before it serves; where both are, the message names one.
head -c 1000 killed/checkpoint.safetensors >cut && cp cut killed/checkpoint.safetensors
runs language_model --resume killed
grep -q 'going on from the checkpoint before it' log || fail "it should say that it goes back"
cp cut killed/checkpoint.safetensors && cp cut killed/checkpoint-previous.safetensors
refused 'killed/checkpoint' language_model --resume killed
