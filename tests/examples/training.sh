# copy_task trains a few steps, writes its files, and is a function of its flags.
source "$(dirname "$0")/common.sh"
keys='accuracy attention device loss peak_bytes seconds seed steps threads tokens_per_second'

for kind in linear softmax 'local --window 8' 'linear --feature-map favor'; do
  attention=${kind// /_}
  runs copy_task "${small[@]}" --attention $kind --steps 45 --out "$attention"
  grep -q '^step ' log || fail "no progress in a pipe"
  grep -q $'[\r\x1b]' log && fail "a pipe gets plain lines"
  grep -q 'largest difference between recurrent and parallel logits' log || fail "no recurrent copies"
  [ "$(grep -c '  given ' log)" = 3 ] || fail "three sequences are copied"
  found=$(grep -o '^  "[a-z_]*"' $attention/summary.json | tr -d ' "' | sort | tr '\n' ' ')
  [ "$found" = "$keys " ] || fail "keys of summary.json: $found"
  [ "$(cut -d, -f1 $attention/metrics.csv | tr '\n' ' ')" = 'step 20 40 45 ' ] || fail "rows of metrics.csv"
  grep -q '</svg>' $attention/curve.svg || fail "curve.svg is not whole"
  for file in settings.json checkpoint.safetensors model.safetensors; do
    [ -s $attention/$file ] || fail "no $file"
  done
  [ -z "$(find $attention -name '*.tmp*')" ] || fail "a temporary file stayed"
done

# Without a recurrent form all is run again for each symbol.
for kind in 'lsh --rounds 2 --buckets 4 --chunk 3' 'improved_clustered --clusters 3 --topk 4'; do
  attention=${kind%% *}
  runs copy_task "${small[@]}" --attention $kind --steps 21 --out "$attention"
  grep -q 'all of it again each time' log || fail "how $attention copies"
  grep -q 'recurrent' log && fail "$attention has no recurrent form"
  [ "$(grep -c '  copied ' log)" = 3 ] || fail "three sequences are copied"
  runs copy_task --evaluate "$attention"
  accuracy=$(grep -o '"accuracy": [0-9.e-]*' "$attention/summary.json" | cut -d' ' -f2)
  grep -q "$(awk -v a="$accuracy" 'BEGIN { printf "Accuracy %.1f", int(1000 * a) / 10 }')" log || fail "another accuracy"
done
runs copy_task --copy '1 2 3' --from lsh
grep -q '  copied ' log || fail "--copy works without a recurrent form"

for kind in linear softmax efficient 'clustered --clusters 3' 'improved_clustered --clusters 3 --topk 4'; do
  attention=masked_${kind%% *}
  runs copy_task "${small[@]}" --task masked --attention $kind --steps 21 --out "$attention"
  grep -q '^Masked copy task, ' log || fail "the task is named"
  [ "$(grep -c '  hidden ' log)" = 3 ] || fail "three masked sequences are shown"
  grep -q 'Masked copy task' "$attention/curve.svg" || fail "the picture names the task"
done
runs copy_task --evaluate masked_clustered
grep -q 'on 2,048 fresh sequences' log || fail "--evaluate measures the masked task"
refused 'finds hidden symbols' copy_task --copy '1 2' --from masked_linear

runs copy_task "${small[@]}" --steps 45 --out again
same_files linear/model.safetensors again/model.safetensors
same_metrics linear again
runs copy_task "${small[@]}" --steps 45 --seed 2 --out other
cmp -s linear/model.safetensors other/model.safetensors && fail "the seed changes nothing"

runs copy_task --evaluate linear
grep -q 'on 2,048 fresh sequences' log || fail "--evaluate says what it measured"
accuracy=$(grep -o '"accuracy": [0-9.e-]*' linear/summary.json | cut -d' ' -f2)
grep -q "$(awk -v a="$accuracy" 'BEGIN { printf "Accuracy %.1f", int(1000 * a) / 10 }')" log || fail "--evaluate finds another accuracy"
runs copy_task --copy "3 1 4 4" --from linear
grep -q '  given *3 *1 *4 *4' log || fail "--copy shows what it was given"

# The picture is a by-product: where it cannot be written, one warning says so.
rm again/curve.svg && mkdir again/curve.svg
runs copy_task --resume again --steps 1200
[ "$(grep -c '^warning: .*again/curve.svg: is a directory' log)" = 1 ] || { cat log; fail "one warning for the picture"; }
grep -q 'The curve is' log && fail "there is no curve to speak of"
[ -s again/summary.json ] || fail "the run ends as ever"

# Without --out nothing is overwritten.
runs copy_task "${small[@]}" --steps 2
runs copy_task "${small[@]}" --steps 2
[ -f runs/copy_task-linear-seed1/summary.json ] && [ -f runs/copy_task-linear-seed1-2/summary.json ] || fail "default --out"
