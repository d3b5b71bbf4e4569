# --device: each program has it, and refuses a device that is not there before it does anything else. Where there is a GPU,
# or an emulated one, a run begun on one device goes on on the other.
source "$(dirname "$0")/common.sh"

refused_everywhere() {
  refused "$2" copy_task --device "$1" --out out
  refused "$2" "$bin/language_model" --device "$1" --text missing --out out
  refused "$2" "$bin/translate" --device "$1" --data missing --out out
  for program in linear_regression custom_op inspect_tape; do refused "$2" "$bin/$program" --device "$1"; done
  [ ! -e out ] || fail "a refused run left a folder"
}
refused_everywhere tpu '--device tpu: must be cpu or cuda$'

if ! "$bin/linear_regression" --device cuda >log 2>&1; then
  refused_everywhere cuda '^[a-z_]*: cuda: .*use the device cpu'
  runs copy_task "${small[@]}" --steps 2 --out whole
  refused 'cuda: .*use the device cpu' copy_task --resume whole --steps 3 --device cuda
  refused 'cuda: .*use the device cpu' copy_task --evaluate whole --device cuda
  exit 0
fi

runs copy_task "${small[@]}" --steps 6 --out whole
runs copy_task "${small[@]}" --steps 3 --device cuda --out part
grep -q '"device": "cuda"' part/settings.json || fail "settings.json names the device"
runs copy_task --resume part --steps 6 --device cpu
runs copy_task --evaluate part --device cuda
cut -d, -f1,2 whole/metrics.csv >a
cut -d, -f1,2 part/metrics.csv >b
paste -d, a b | awk -F, 'NR > 1 { far = $2 - $4; if (far < 0) far = -far; if ($1 != $3 || far > 1e-4) exit 1 }' ||
  fail "the devices' losses differ: $(paste a b)"
