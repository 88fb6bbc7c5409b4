#include "nsp/cost/node_sums.h"

#include <algorithm>

namespace nsp {

void NodeSums::add(const SequenceCost& cost) {
  prologue += cost.prologue;
  work += cost.compute;
  path = {.forward = std::max(path.forward, cost.path.forward),
          .backward = std::max(path.backward, cost.path.backward)};
  epilogue += cost.epilogue;
  streamed += cost.streamed;
  ++sequences;
}

Passes PhaseCost::sum() const {
  Passes all = prologue;
  all += compute;
  all += epilogue;
  return all;
}

}  // namespace nsp
