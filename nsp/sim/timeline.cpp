#include "nsp/sim/timeline.h"

namespace nsp {
namespace {

constexpr std::int64_t Breakdown::* kParts[] = {&Breakdown::attention_forward,
                                                &Breakdown::attention_backward,
                                                &Breakdown::recompute,
                                                &Breakdown::dense,
                                                &Breakdown::head,
                                                &Breakdown::optimizer,
                                                &Breakdown::exposed_exchange,
                                                &Breakdown::exposed_fsdp,
                                                &Breakdown::waiting};

}  // namespace

std::int64_t Breakdown::sum() const {
  std::int64_t all = 0;
  for (const auto part : kParts) {
    all += this->*part;
  }
  return all;
}

void Breakdown::add(const Breakdown& other, std::int64_t times) {
  for (const auto part : kParts) {
    this->*part += times * (other.*part);
  }
}

Breakdown Timeline::mean() const {
  Breakdown all;
  for (const Breakdown& rank : ranks) {
    all.add(rank);
  }
  for (const auto part : kParts) {
    all.*part /= ranks.empty() ? 1 : static_cast<std::int64_t>(ranks.size());
  }
  return all;
}

}  // namespace nsp
