# A translation run that was stopped and resumed ends with the bits of an undisturbed one, wherever it was stopped.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/translate_data.sh"
validated=4  # columns; the rest are times
runs translate "${tiny[@]}" --epochs 12 --out whole

# More epochs, in place and elsewhere.
runs translate "${tiny[@]}" --epochs 5 --out part
runs translate --resume part --epochs 12 --out elsewhere
same_runs whole elsewhere
runs translate --resume part --epochs 12
same_runs whole part
refused '--epochs 3: the run in part is at step' translate --resume part --epochs 3

# SIGKILL at random moments, until it ends by itself; then signals.
"$bin/translate" "${tiny[@]}" --epochs 12 --out killed >log 2>&1 &
background=$!
stop_and_resume translate killed
same_runs whole killed

# A checkpoint that was cut off: the one before it serves; where both are, the message names one.
head -c 1000 killed/checkpoint.safetensors >cut && cp cut killed/checkpoint.safetensors
runs translate --resume killed
grep -q 'going on from the checkpoint before it' log || fail "it should say that it goes back"
same_runs whole killed
cp cut killed/checkpoint.safetensors && cp cut killed/checkpoint-previous.safetensors
refused 'killed/checkpoint' translate --resume killed

# Other data: the position in them does not fit.
pairs train 7 280
rm data/train.de.gz
refused 'part/checkpoint.*data|part/checkpoint' translate --resume part --epochs 20
refused '--resume may change only' translate --resume part --dim 32
