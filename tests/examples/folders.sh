# The folder of a run: one program writes there at a time, a failed start does not spoil it, nothing in it is overwritten.
source "$(dirname "$0")/common.sh"

# Fails before the first checkpoint, for want of room: only settings are there, and the next may start in the same folder.
limited() { (ulimit -f 8 && copy_task "$@"); }
refused '^copy_task: .*checkpoint' limited "${small[@]}" --steps 20 --out early
[ "$(ls -A early)" = settings.json ] || fail "a run that could not begin left $(ls -A early)"
refused 'early: holds no checkpoint; start the run again with --out' copy_task --resume early
refused 'early: holds no checkpoint; start the run again with --out' copy_task --evaluate early
runs copy_task "${small[@]}" --steps 20 --lr 0.001 --out early
grep -q '"lr": 0.001' early/settings.json || fail "the settings of the first attempt stayed"
refused 'early: holds a run already; --resume early goes on' copy_task "${small[@]}" --out early

# What is there already stays, be it of a run or of somebody else.
mkdir other
for name in settings.json checkpoint.safetensors metrics.csv curve.svg summary.json; do
  echo '{"editor.rulers": [120]}' >other/$name
  refused "other/$name: is there already" copy_task "${small[@]}" --steps 20 --out other
  [ "$(cat other/*)" = '{"editor.rulers": [120]}' ] || fail "$name was overwritten"
  rm other/$name
done
echo mine >other/notes.txt
runs copy_task "${small[@]}" --steps 20 --out other
[ "$(cat other/notes.txt)" = mine ] || fail "notes.txt was overwritten"

# Two programs in one folder: the second is refused, until the first is dead, however it died. Readers are welcome.
for signal in TERM KILL; do
  "$bin/copy_task" "${small[@]}" --steps 100000000 --out busy$signal >busy$signal.log 2>&1 &
  background=$!
  wait_for grep -q '^step' busy$signal.log
  refused "busy$signal: is in use by another copy_task" copy_task --resume busy$signal --steps 1
  refused "busy$signal: is in use by another copy_task" copy_task --resume busy$signal --steps 1 --out busy$signal
  refused "busy$signal: is in use by another copy_task" copy_task "${small[@]}" --out busy$signal
  refused "busy$signal: is in use by another copy_task" copy_task --resume early --out busy$signal
  runs copy_task --evaluate busy$signal
  kill -0 $background || fail "the first program did not live on"
  kill -$signal $background
  wait $background 2>/dev/null
  background=
  copy_task --resume busy$signal --steps 1 >log 2>&1
  grep -q 'in use' log && fail "a lock stayed after SIG$signal"
done

# --resume A --out B: where A cannot be gone on with, there is no B.
runs copy_task "${small[@]}" --steps 30 --out a
mv a/metrics.csv metrics.csv
refused 'a/metrics.csv: cannot be read' copy_task --resume a --steps 60 --out b
[ ! -e b ] || fail "a refused run left a folder"
mv metrics.csv a
sed -i 's/"dim": 16/"dim": 32/' a/settings.json
refused 'a/checkpoint.safetensors: ' copy_task --resume a --steps 60 --out b
[ ! -e b ] || fail "a refused run left a folder"
sed -i 's/"dim": 32/"dim": 16/' a/settings.json
refused '^copy_task: .*checkpoint' limited --resume a --steps 60 --out b
runs copy_task --resume a --steps 60 --out b
runs copy_task --resume a --steps 60
same_files a/model.safetensors b/model.safetensors
same_metrics a b

# A run that has ended, resumed into another folder, is whole there too.
runs copy_task "${small[@]}" --steps 30 --out ended
runs copy_task --resume ended --out copy
same_metrics ended copy
runs copy_task --resume copy --steps 60
same_files a/model.safetensors copy/model.safetensors
