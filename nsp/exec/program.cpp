#include "nsp/exec/program.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "nsp/base/error.h"
#include "nsp/exec/recomputed.h"
#include "nsp/plan/check.h"
#include "nsp/plan/issue_order.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

// What a sound plan may ask for and this executor does not do: refused, never ignored.
void check_supported(const Round& round) {
  for (const Placement& placement : round.placements) {
    if (placement.backend != Backend::kLocal && placement.backend != Backend::kUlysses) {
      bad_input("backend", name(placement.backend), "the executor has local and ulysses only");
    }
  }
}

Plan read_plan(const World& world, std::string_view plan_json) {
  Plan plan = parse_plan(plan_json);
  check(plan);
  if (plan.world != world.communicator->size()) {
    bad_input("plan.world",
              plan.world,
              "the process group has " + std::to_string(world.communicator->size()) +
                  " ranks; plan for as many");
  }
  for (const Round& round : plan.rounds) {
    check_supported(round);
  }
  return plan;
}

Step make_step(const Issue& issue, std::size_t block) {
  const std::string range = fmt::format(
      "nsp d{} {} {}", issue.degree, issue.degree == 1 ? "local" : "ulysses", name(issue.phase));
  return {.phase = issue.phase,
          .block = block,
          .forward_range = range + " fwd",
          .backward_range = range + " bwd"};
}

std::vector<Step> make_steps(const std::vector<Issue>& order,
                             const std::vector<std::int32_t>& degrees) {
  std::vector<Step> steps;
  for (const Issue& issue : order) {
    // The leaf is not among the degrees: its index is the one past the end.
    const auto block = std::ranges::find(degrees, issue.degree) - degrees.begin();
    steps.push_back(make_step(issue, static_cast<std::size_t>(block)));
  }
  return steps;
}

// Numbers are the same either way, so a plan's transports do not bind: peer copies wherever they
// reach, which all ranks have agreed on.
void choose_transport(const World& world, Block& block) {
  const auto& peers = world.communicator->peers;
  if (peers && block.degree > 1 && block.degree <= peers->reach()) {
    block.transport = Transport::kPeerCopy;
    block.fetch_nanoseconds = peers->fetch_nanoseconds();
  }
}

// The first leaf part covers the exchanges that were issued before the first level's compute.
void add_first_leaf(ProgramRound& round, std::unique_ptr<LevelBackend> first) {
  const auto before = std::ranges::find_if(
      round.steps, [&](const Step& step) { return step.phase == Phase::kCompute; });
  round.steps.insert(before, make_step({.phase = Phase::kCompute}, round.blocks.size()));
  round.blocks.push_back(std::move(first));
}

ProgramRound make_round(World& world, const Round& round, const Heads& heads) {
  const std::vector<std::int32_t> degrees = exchanged_degrees(round);
  const std::int32_t rank = world.communicator->rank();
  std::vector<Block> blocks = make_blocks(round, rank, degrees);
  const std::int32_t leaf_first = round.schedule.leaf_first[static_cast<std::size_t>(rank)];
  Block first = take_first(blocks.back(), leaf_first);
  ProgramRound result;
  result.tokens = first.tokens;
  for (Block& block : blocks) {
    result.tokens += block.tokens;
    const std::int32_t degree = block.degree;
    choose_transport(world, block);
    result.blocks.push_back(degree == 1 ? make_local(std::move(block), *world.attention)
                                        : make_ulysses(std::move(block),
                                                       split_heads(heads, degree),
                                                       *world.communicator,
                                                       *world.attention));
  }
  result.steps = make_steps(round.schedule.order, degrees);
  if (leaf_first > 0) {
    add_first_leaf(result, make_local(std::move(first), *world.attention));
  }
  result.recomputed = make_recomputed(world, round, heads, result);
  return result;
}

struct Registry {
  std::mutex mutex;
  std::map<std::int64_t, std::shared_ptr<Program>> programs;
  std::int64_t next = 1;
};

// Never destroyed: Python may release handles while the process ends.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

void StashBytes::add(std::int64_t bytes) {
  const std::int64_t now = held += bytes;
  std::int64_t before = most;
  while (before < now && !most.compare_exchange_weak(before, now)) {
  }
}

void World::reset_counters() {
  communicator->exchanges = 0;
  communicator->bytes = 0;
  attention->forward_launches = 0;
  attention->backward_launches = 0;
  attention_calls = 0;
  stash.most = stash.held.load();
}

Program::Program(std::shared_ptr<World> world, std::string_view plan_json, const Heads& heads)
    : world_(std::move(world)), heads_(heads) {
  check_heads(heads);
  for (const Round& round : read_plan(*world_, plan_json).rounds) {
    rounds_.push_back(make_round(*world_, round, heads));
  }
}

const ProgramRound& Program::round(std::int64_t index) const {
  if (index < 0 || index >= num_rounds()) {
    bad_input("round", index, "the plan has " + std::to_string(num_rounds()) + " rounds");
  }
  return rounds_[static_cast<std::size_t>(index)];
}

std::int64_t add_program(std::shared_ptr<Program> program) {
  const std::scoped_lock lock(registry().mutex);
  registry().programs.emplace(registry().next, std::move(program));
  return registry().next++;
}

std::shared_ptr<Program> find_program(std::int64_t handle) {
  const std::scoped_lock lock(registry().mutex);
  const auto entry = registry().programs.find(handle);
  if (entry == registry().programs.end()) {
    bad_input("handle", handle, "no such schedule; keep it alive until its forward pass is done");
  }
  return entry->second;
}

void release_program(std::int64_t handle) {
  std::shared_ptr<Program> last;  // destroyed after the lock is gone
  const std::scoped_lock lock(registry().mutex);
  const auto entry = registry().programs.find(handle);
  if (entry != registry().programs.end()) {
    last = std::move(entry->second);
    registry().programs.erase(entry);
  }
}

}  // namespace nsp
