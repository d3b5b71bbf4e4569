#include <linnet/linnet.h>

#include <iostream>
using namespace linnet;

// A linear transformer learns to count, 0 1 2 ... 9 0 1 ..., and goes on where a prompt ends.
int main() {
  manual_seed(1);
  models::CausalLM net({.vocab = 10, .dim = 32, .layers = 1, .heads = 2, .max_time = 32});
  optim::RAdam optimizer(net.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 200; ++step) {
    std::vector<int32_t> now, next;
    for (int row = 0; row < 16; ++row)
      for (int time = 0; time < 24; ++time)
        now.push_back((row + step + time) % 10), next.push_back((now.back() + 1) % 10);
    Tape tape;
    Variable loss = cross_entropy(net(Tensor::from(now, {16, 24})), Tensor::from(next, {16, 24}));
    tape.backward(loss);
    optimizer.step();
    optimizer.clear_grads();
    if (step % 50 == 49) std::cout << "step " << step + 1 << ", loss " << loss.item() << "\n";
  }
  const Tensor prompt = Tensor::from<int32_t>({3, 4, 5}, {1, 3});
  for (int32_t digit : net.generate(prompt, {.tokens = 12, .temperature = 0}).to_vector<int32_t>())
    std::cout << digit << " ";
  std::cout << "\n";
}
