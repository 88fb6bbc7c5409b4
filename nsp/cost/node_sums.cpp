#include "nsp/cost/node_sums.h"

#include <algorithm>

#include "nsp/cost/launch_law.h"

namespace nsp {
namespace {

std::int64_t compute(std::int64_t launches,
                     std::int64_t launch,
                     std::int64_t work,
                     std::int64_t path,
                     std::int64_t streamed) {
  if (launches == 1) {
    return launch + launch_law(work, path) + streamed;
  }
  const std::int64_t one = launch + launch_law((work + launches - 1) / launches, path);
  return one + std::max((launches - 1) * one, streamed);
}

}  // namespace

Passes SequenceCost::traffic() const {
  Passes all = prologue;
  all += epilogue;
  return all;
}

void NodeSums::add(const SequenceCost& cost) {
  prologue += cost.prologue;
  work += cost.compute;
  path = {.forward = std::max(path.forward, cost.path.forward),
          .backward = std::max(path.backward, cost.path.backward)};
  epilogue += cost.epilogue;
  merge += cost.merge;
  streamed += cost.streamed;
  ++sequences;
}

Passes WayFixed::sum() const {
  Passes all = prologue;
  all += epilogue;
  all += {.forward = launches.forward * launch.forward,
          .backward = launches.backward * launch.backward};
  return all;
}

Passes compute_seconds(const WayFixed& way,
                       const Passes& work,
                       const Passes& path,
                       const Passes& streamed) {
  return {.forward = compute(way.launches.forward,
                             way.launch.forward,
                             work.forward,
                             path.forward,
                             streamed.forward + way.hop.forward),
          .backward = compute(way.launches.backward,
                              way.launch.backward,
                              work.backward,
                              path.backward,
                              streamed.backward + way.hop.backward)};
}

Passes PhaseCost::sum() const {
  Passes all = prologue;
  all += compute;
  all += epilogue;
  return all;
}

}  // namespace nsp
