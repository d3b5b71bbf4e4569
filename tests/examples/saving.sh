# Saving under hard conditions: killed in the middle, no room on the disk. A readable checkpoint stays.
source "$(dirname "$0")/common.sh"

# A run that saves at nearly every moment: each resume begins by writing settings and ends by saving.
runs copy_task "${small[@]}" --steps 1 --out run
caught=0
for i in $(seq 1 50); do
  "$bin/copy_task" --resume run --steps $((100000 + i)) >log 2>&1 &
  background=$!
  sleep "0.0$((RANDOM % 10))"
  kill -TERM $background 2>/dev/null  # it saves now
  sleep "0.00$((RANDOM % 10))"
  kill -KILL $background 2>/dev/null
  wait $background 2>/dev/null
  background=
  [ -z "$(find run -name '*.tmp-*')" ] || caught=$((caught + 1))
  runs copy_task --copy '1 2' --from run
done
echo "50 kills, $caught of them while a file was being written"

# damaged: the checkpoint before it serves.
runs copy_task "${small[@]}" --steps 20 --out damaged
[ -s damaged/checkpoint-previous.safetensors ] || fail "no previous checkpoint"
head -c 1000 damaged/checkpoint.safetensors >cut && cp cut damaged/checkpoint.safetensors
runs copy_task --resume damaged
grep -q 'going on from the checkpoint before it' log || fail "it should say that it goes back"
cp cut damaged/checkpoint.safetensors
cp cut damaged/checkpoint-previous.safetensors
refused 'damaged/checkpoint' copy_task --resume damaged

# Numbers that cannot be: the message names the file and the number.
runs copy_task "${small[@]}" --steps 30 --out numbers
cp numbers/checkpoint.safetensors good
# number NAME VALUE: puts it into the checkpoint's header, whose length must stay.
number() {
  local old new
  old=$(grep -ao "\"$1\":\"[^\"]*\"" good)
  new=$(printf '%-*s' ${#old} "\"$1\":\"$2\"")
  LC_ALL=C sed "s/$old/$new/" good >numbers/checkpoint.safetensors
}
for wrong in 'training.seconds nan' 'training.seconds -1' 'training.seconds inf' 'training.loss -1' 'training.norm nan' \
  'training.counted 0' 'training.counted -9' 'training.counted 999' 'training.correct -1' 'training.window_steps 0' \
  'training.window_steps 9' 'training.step 29' 'training.step -1' 'schedule.step 7'; do
  # shellcheck disable=SC2086  # a name and a value
  number $wrong
  refused "^copy_task: numbers/checkpoint.safetensors: .*${wrong%% *}|^copy_task: numbers/checkpoint.safetensors: .*step" \
    copy_task --resume numbers --steps 60
done
cp good numbers/checkpoint.safetensors
runs copy_task --resume numbers --steps 60

# A limit on the size of files stands for a full disk: the save fails, and what was there stays.
runs copy_task "${small[@]}" --steps 20 --out full
cp full/checkpoint.safetensors old
limited() { (ulimit -f 8 && copy_task "$@"); }
refused '^copy_task: .*checkpoint' limited --resume full --steps 40
same_files old full/checkpoint.safetensors
runs copy_task --resume full --steps 40
runs copy_task "${small[@]}" --steps 40 --out undisturbed
same_files undisturbed/model.safetensors full/model.safetensors
same_metrics undisturbed full

# A disk that is really full, where this may mount one.
mkdir disk
if mount -t tmpfs -o size=300k tmpfs disk 2>/dev/null; then
  copy_task "${small[@]}" --steps 20 --out disk/run >log 2>&1 || { cat log; umount disk; fail "the disk was to hold one run"; }
  cp disk/run/checkpoint.safetensors old
  head -c 300k /dev/zero >disk/filler 2>/dev/null
  (refused '^copy_task: ' copy_task --resume disk/run --steps 40 && same_files old disk/run/checkpoint.safetensors &&
    rm disk/filler && runs copy_task --resume disk/run --steps 40 &&
    same_files undisturbed/model.safetensors disk/run/model.safetensors)
  code=$?
  umount disk
  [ $code = 0 ] || exit 1
else
  echo "no tmpfs may be mounted here: the test with a full disk was left out"
fi
