#include "nsp/plan/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>
#include <vector>

#include "nsp/base/error.h"
#include "nsp/cli/output.h"
#include "nsp/cli/planning.h"
#include "nsp/cost/cost_model.h"
#include "nsp/cost/evaluate.h"
#include "nsp/cost/make_profile.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/plan_text.h"
#include "nsp/planner/mark_choice.h"
#include "nsp/sim/memory.h"
#include "nsp/workload/trace.h"

namespace nsp {
namespace {

using Lengths = std::vector<std::int64_t>;

Lengths whole_file(Lengths lengths, const PlanOptions& options) {
  const std::int64_t most = options.planning.max_length;
  if (options.batch) {
    bad_input("--batch", *options.batch, "needs --batch-tokens, the size of a batch");
  }
  if (most < 0) {
    bad_input("--max-length", most, "must be at least 1, or 0 for no limit");
  }
  if (most > 0) {
    std::erase_if(lengths, [most](std::int64_t length) { return length > most; });
  }
  if (lengths.empty()) {
    bad_input(
        "--max-length", most, "leaves no sequence of " + options.planning.lengths + "; raise it");
  }
  return lengths;
}

Lengths read_batch(const PlanOptions& options) {
  const PlanningOptions& planning = options.planning;
  Lengths lengths = load_lengths(planning.lengths);
  if (!options.batch_tokens) {
    return whole_file(std::move(lengths), options);
  }
  const std::int64_t index = options.batch.value_or(0);
  auto batches = full_batches(lengths, planning.max_length, *options.batch_tokens);
  if (index < 0 || index >= std::ssize(batches)) {
    bad_input("--batch",
              index,
              planning.lengths + " has " + std::to_string(batches.size()) + " full batches of " +
                  std::to_string(*options.batch_tokens) + " tokens, counted from 0");
  }
  return std::move(batches[static_cast<std::size_t>(index)]);
}

// Share of the ranks' time, under the cost model, spent waiting for the slowest rank of each round.
std::string idle_line(const Plan& plan,
                      const ModelShape& shape,
                      const Profile& profile,
                      std::int32_t ep) {
  const CostModel model(shape, profile, plan.ranks_per_host, ep);
  double busy = 0;
  double all = 0;
  for (const RoundLoad& round : evaluate(model, plan).rounds) {
    for (const Passes& rank : round.ranks) {
      busy += static_cast<double>(rank.sum());
    }
    all += static_cast<double>(round.largest.sum()) * plan.world;
  }
  return all > 0 ? fmt::format("idle {:.2f}% of the ranks' time\n", 100 * (1 - busy / all)) : "";
}

// Of the fullest rank: a plan that fits its token budget may not fit the card.
std::string memory_line(const Plan& plan, const ModelShape& shape) {
  const auto gib = [&](Checkpointing checkpointing) {
    const auto most = std::ranges::max(memory_bytes(plan, shape, checkpointing));
    return static_cast<double>(most) / (std::int64_t{1} << 30);
  };
  return fmt::format(
      "memory beside model state, estimated: {:.1f} GiB, {:.1f} with checkpointed layers\n",
      gib(Checkpointing::kNone),
      gib(Checkpointing::kMarks));
}

std::string saved_line(const Plan& plan, const ModelShape& shape, const PlanOptions& options) {
  std::string line;
  if (options.byte_budget > 0) {
    line += fmt::format("saved attention output: {} of {} bytes a rank and layer\n",
                        plan.predicted.bytes_max,
                        options.byte_budget);
  }
  if (options.host_budget > 0) {
    const auto bytes = offloaded_bytes(plan, output_token_bytes(shape));
    line += fmt::format("offloaded attention output: {} of {} bytes a rank and layer\n",
                        std::ranges::max(bytes),
                        options.host_budget);
  }
  return line;
}

}  // namespace

int run_plan(const PlanOptions& options, Streams streams) {
  check_writable("--json", options.json);
  const ModelShape shape = find_model(options.planning.model);
  const Profile profile = find_profile(shape, options.planning.profile);
  PlanRequest request = request_of(options.planning);
  request.lengths = read_batch(options);
  request.planner = options.planner;
  request.checkpointing = options.checkpointing;
  request.over_length = parse_over_length(options.over_length);
  request.byte_budget = options.byte_budget;
  request.host_budget = options.host_budget;
  request.mark_order = parse_mark_order(options.mark_order);
  const PlanResult result = plan(request, shape, profile);
  if (!result.plan.feasible) {
    if (!options.json.empty()) {
      write_result(options.json, to_json(result.plan), "", streams);
    }
    streams.err << "nsp: no plan fits: " << result.why_infeasible << "\n";
    return 1;
  }
  write_result(options.json,
               to_json(result.plan),
               summary(result.plan) + idle_line(result.plan, shape, profile, request.ep) +
                   memory_line(result.plan, shape) + saved_line(result.plan, shape, options),
               streams);
  return 0;
}

}  // namespace nsp
