#include "nsp/workload/order.h"

#include <numeric>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/base/random.h"

namespace nsp {

std::vector<std::int64_t> permutation(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  if (count < 0) {
    bad_input("count", count, "must be 0 or more samples");
  }
  // Two steps of the generator part neighbouring seeds and epochs: (1, 2) and (2, 1) differ.
  Random random(Random(Random(seed).next() + epoch).next());
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[static_cast<std::size_t>(random.below(left))]);
  }
  return order;
}

}  // namespace nsp
