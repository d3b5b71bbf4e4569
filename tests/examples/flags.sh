# Every wrong flag gets a message that says what is wrong, and an exit code that is not 0; nothing is left behind.
source "$(dirname "$0")/common.sh"

for flag in --layers --heads --dim --batch --steps --symbols --threads; do
  for value in 0 -3; do
    refused "$flag $value: must be at least 1" copy_task $flag $value --out out
  done
  refused "$flag" copy_task $flag many --out out
  refused "$flag" copy_task $flag 2.5 --out out
  refused "$flag" copy_task --out out $flag
done
for flag in --layers --heads --dim --length --symbols --batch --steps --lr-drop-at --seed --threads; do
  refused "^copy_task: $flag 99999999999999999999: must be a whole number" copy_task $flag 99999999999999999999 --out out
  refused "^copy_task: $flag 0x10: must be a whole number" copy_task $flag 0x10 --out out
done
refused '--batch 9999999999999: must be at most' copy_task --batch 9999999999999 --out out
refused '--dim 30: must be a multiple of --heads 4' copy_task --dim 30 --out out
refused '--length 5: must be at least 6' copy_task --length 5 --out out
refused '--attention magic: must be linear, .* clustered or improved_clustered$' copy_task --attention magic --out out
for kind in efficient 'clustered --clusters 4'; do
  refused "--attention ${kind% --*}: sees what comes later.*--task masked can" copy_task --attention $kind --out out
done
refused '--task write: must be copy or masked' copy_task --task write --out out
refused '--length 7: must be at least 8' copy_task --task masked --length 7 --out out
refused '--attention lsh: wants --buckets' copy_task --attention lsh --chunk 4 --out out
refused '--attention lsh: wants --chunk' copy_task --attention lsh --buckets 4 --out out
refused '--buckets 5: must be even' copy_task --attention lsh --buckets 5 --chunk 4 --out out
refused '--rounds -1: must be at least 1' copy_task --attention lsh --rounds -1 --buckets 4 --chunk 4 --out out
refused '--attention improved_clustered: wants --clusters' copy_task --attention improved_clustered --out out
refused '--topk 4: only for --attention improved_clustered' copy_task --task masked --attention clustered --clusters 4 --topk 4 --out out
for flag in --rounds --buckets --chunk; do
  refused "$flag 2: only for --attention lsh" copy_task $flag 2 --out out
done
refused '--clusters 2: only for --attention clustered or improved_clustered' copy_task --clusters 2 --out out
refused '--attention local: wants --window' copy_task --attention local --out out
refused '--attention local: wants --window' copy_task --attention local --window -3 --out out
refused '--window 99999999999999999999: must be a whole number' copy_task --window 99999999999999999999 --out out
refused '--window 4: only for --attention local' copy_task --window 4 --out out
refused '--feature-map magic: must be elu1, relu, .* or favor$' copy_task --feature-map magic --out out
refused '--feature-map relu: only for --attention linear' copy_task --feature-map relu --attention softmax --out out
refused '--lr -1: must be above 0' copy_task --lr -1 --out out
refused '--lr 0: must be above 0' copy_task --lr 0 --out out
refused '--lr nan: must be above 0' copy_task --lr nan --out out
refused '--clip -1: must be above 0' copy_task --clip -1 --out out
refused '--lr-drop-at -1: must be at least 0' copy_task --lr-drop-at -1 --out out
refused '--seed -1: must be at least 0' copy_task --seed -1 --out out
refused 'nonsense' copy_task --nonsense --out out
refused '[Ee]xcludes' copy_task --resume a --evaluate b
refused '--copy' copy_task --from out
refused '--from' copy_task --copy '1 2 3'
refused 'missing: there is no such folder' copy_task --copy '1 2 3' --from missing
refused 'missing: there is no such folder' copy_task --evaluate missing
refused 'missing: there is no such folder' copy_task --resume missing
for flag in --out --resume --evaluate; do
  refused "^copy_task: $flag: names no folder" copy_task $flag ''
done
mkdir empty
refused 'empty: holds no run' copy_task --resume empty
[ ! -e out ] || fail "a refused run left a folder"

touch file
refused 'file/out: cannot be made' copy_task --out file/out
refused 'proc/out: cannot be made' copy_task --out /proc/out

runs copy_task "${small[@]}" --steps 1 --out model
refused '"5" is not a symbol; they are 1 .. 4' copy_task --copy '1 5' --from model
refused '"0" is not a symbol' copy_task --copy '0' --from model
refused '"-1" is not a symbol' copy_task --copy '1 -1' --from model
refused '"x" is not a symbol' copy_task --copy 'x' --from model
refused 'no symbols were given' copy_task --copy ' ' --from model
refused '6 symbols, but the model takes at most 5' copy_task --copy '1 2 3 4 1 2' --from model
refused 'the settings come from the folder' copy_task --evaluate model --dim 32
cp model/settings.json settings
# given KEY VALUE: settings with another value.
given() { sed "s/\"$1\": [^,]*/\"$1\": $2/" settings >model/settings.json; }
for value in 16.7 1e30 true '"16"' null 18446744073709551615 -9223372036854775809; do
  given dim "$value"
  refused 'model/settings.json: "dim" is .*, wanted: a whole number' copy_task --evaluate model
done
given dim 0
refused 'model/settings.json: --dim 0: must be at least' copy_task --resume model
given lr '"fast"'
refused 'model/settings.json: "lr" is "fast", wanted: a number' copy_task --resume model
given attention 3
refused 'model/settings.json: "attention" is 3, wanted: text' copy_task --resume model
echo '{' >model/settings.json
refused 'model/settings.json: not the JSON' copy_task --evaluate model
echo '{}' >model/settings.json
refused 'model/settings.json: "attention" is missing' copy_task --evaluate model

refused 'the training has diverged|not finite' copy_task "${small[@]}" --lr 1e30 --steps 20 --out diverged

runs copy_task --help
grep -q -- '--lr-drop-at' log || fail "--help lists the flags"

to_full_disk() { copy_task "$@" >/dev/full; }
refused 'the output could not be written' to_full_disk --help
refused 'the output could not be written' to_full_disk "${small[@]}" --steps 2 --out lost
