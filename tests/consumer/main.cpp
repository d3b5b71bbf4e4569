#include <linnet/linnet.h>

#include <iostream>

int main() {
  const linnet::Tensor x = linnet::Tensor::full({2, 3}, 0.5);
  std::cout << x << "\n";
}
