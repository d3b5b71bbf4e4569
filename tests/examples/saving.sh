# Saving under hard conditions: killed in the middle, no room on the disk. A readable checkpoint stays.
source "$(dirname "$0")/common.sh"

# A run that saves at nearly every moment: each resume begins by writing settings and ends by saving.
runs copy_task "${small[@]}" --steps 1 --out run
for i in $(seq 1 25); do
  "$bin/copy_task" --resume run --steps $((100000 + i)) >log 2>&1 &
  background=$!
  sleep "0.0$((RANDOM % 10))"
  kill -TERM $background 2>/dev/null  # it saves now
  sleep "0.00$((RANDOM % 10))"
  kill -KILL $background 2>/dev/null
  wait $background 2>/dev/null
  background=
  runs copy_task --evaluate run
done

# damaged: the checkpoint before it serves.
runs copy_task "${small[@]}" --steps 20 --out damaged
[ -s damaged/checkpoint-previous.safetensors ] || fail "no previous checkpoint"
head -c 1000 damaged/checkpoint.safetensors >cut && cp cut damaged/checkpoint.safetensors
runs copy_task --resume damaged
grep -q 'going on from the checkpoint before it' log || fail "it should say that it goes back"
cp cut damaged/checkpoint.safetensors
cp cut damaged/checkpoint-previous.safetensors
refused 'damaged/checkpoint' copy_task --resume damaged

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
