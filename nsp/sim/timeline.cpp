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

Breakdown& Breakdown::operator+=(const Breakdown& other) {
  for (const auto part : kParts) {
    this->*part += other.*part;
  }
  return *this;
}

Breakdown Timeline::mean() const {
  Breakdown all;
  for (const Breakdown& rank : ranks) {
    all += rank;
  }
  for (const auto part : kParts) {
    all.*part /= ranks.empty() ? 1 : static_cast<std::int64_t>(ranks.size());
  }
  return all;
}

}  // namespace nsp
