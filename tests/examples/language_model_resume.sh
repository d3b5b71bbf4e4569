# A language model's run that was stopped and resumed ends with the bits of an undisturbed one, wherever it was stopped.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/language_model_data.sh"
validated=2  # columns; the rest are times
runs language_model "${tiny[@]}" --steps 600 --out whole

# Killed, then stopped by signals, until it ends by itself.
"$bin/language_model" "${tiny[@]}" --steps 600 --out killed >log 2>&1 &
background=$!
stop_and_resume language_model killed
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
