# Pairs of a language that is a dictionary, word by word, and flags of a model that trains in moments.
translate() { "$bin/translate" "$@"; }
pairs() {  # pairs NAME SEED LINES
  awk -v seed="$2" -v lines="$3" -v name="data/$1" 'BEGIN {
    srand(seed)
    split("one two three four five six seven eight nine", en)
    split("eins zwei drei vier fünf sechs sieben acht neun", de)
    for (i = 0; i < lines; ++i) {
      a = b = ""
      for (n = 4 + int(4 * rand()); n > 0; --n) { w = 1 + int(9 * rand()); a = a " " en[w]; b = b " " de[w] }
      print substr(a, 2) >(name ".en")
      print substr(b, 2) >(name ".de")
    }
  }'
}
mkdir data
pairs train 1 300
pairs val 2 20
pairs test_2016_flickr 3 20
gzip data/train.de data/val.en
shape=(--layers 1 --heads 2 --hidden 32 --batch-tokens 400 --threads 1)
small=("${shape[@]}" --dim 16 --vocab 60)
tiny=(--data data "${small[@]}")
