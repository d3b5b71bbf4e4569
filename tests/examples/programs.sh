# Each of the smaller examples runs and says what it should.
source "$(dirname "$0")/common.sh"

runs "$bin/linear_regression"
learned=$(sed -n 's/^learned *y = \([-0-9.]*\) x0 \([-+0-9.]*\) x1 \([-+0-9.]*\)$/\1 \2 \3/p' log)
[ -n "$learned" ] || fail "linear_regression shows what it learned"
echo "$learned" | awk 'function far(a, b) { return a - b > 0.05 || b - a > 0.05 }
  { exit far($1, 2) || far($2, -3) || far($3, 0.5) }' || fail "linear_regression learned $learned"

runs "$bin/custom_op"
grep -q 'gradcheck of a wrong gradient' log || fail "custom_op shows what gradcheck says of a wrong gradient"
refused 'nonsense' "$bin/custom_op" --nonsense
to_full_disk() { "$bin/$1" >/dev/full; }
for program in linear_regression custom_op inspect_tape; do
  refused 'the output could not be written' to_full_disk $program
done

runs "$bin/inspect_tape" --out .
grep -q 'N (2D + 2M + 1) = 4,128' log || fail "inspect_tape tells what the op keeps"
grep -q '^  the op    4,128,' log || fail "the op keeps other than N (2D + 2M + 1) floats a head"
for file in tape_own_op.dot tape_composed.dot; do
  grep -q '^}' $file || fail "$file is not whole"
done
runs "$bin/inspect_tape" --length 1 --heads 1 --dim 1 --value-dim 1
refused '--dim 99999999999999999999: must be a whole number' "$bin/inspect_tape" --dim 99999999999999999999
refused '--length 0: must be at least 1' "$bin/inspect_tape" --length 0
refused 'missing/tape_own_op.dot: cannot write' "$bin/inspect_tape" --out missing

runs copy_task "${small[@]}" --steps 40 --out a
runs copy_task "${small[@]}" --steps 40 --attention softmax --out b
runs "$bin/plot_runs" a b --svg both.svg
grep -q 'linear, seed 1' both.svg && grep -q 'softmax, seed 1' both.svg || fail "plot_runs shows a legend"
sed -i 's/"attention": [^,]*/"attention": 3/; s/"lr_drop_at": [^,]*/"lr_drop_at": "late"/' b/settings.json
runs "$bin/plot_runs" a b --svg both.svg
sed -i '1s/loss/lost/' b/metrics.csv
refused 'b/metrics.csv: has no column loss' "$bin/plot_runs" a b --svg both.svg
refused 'there is no such folder' "$bin/plot_runs" missing --svg both.svg
refused '--svg' "$bin/plot_runs" a
