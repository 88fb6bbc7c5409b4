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
#include "nsp/plan/exchanges.h"
#include "nsp/plan/plan_json.h"

namespace nsp {
namespace {

Plan read_plan(const World& world, std::string_view plan_json) {
  Plan plan = parse_plan(plan_json);
  check(plan);
  if (plan.world != world.communicator->size()) {
    bad_input("plan.world",
              plan.world,
              "the process group has " + std::to_string(world.communicator->size()) +
                  " ranks; plan for as many");
  }
  return plan;
}

Step make_step(Phase phase, const Block& block, std::size_t index) {
  const std::string range = fmt::format("nsp d{} {}{} {}",
                                        block.degree,
                                        name(block.backend),
                                        block.wave == Wave::kShort ? " short" : "",
                                        name(phase));
  return {.phase = phase,
          .block = index,
          .forward_range = range + " fwd",
          .backward_range = range + " bwd"};
}

// A phase of a wave is that of each of its blocks in turn.
std::vector<Step> make_steps(const std::vector<Issue>& order,
                             const std::vector<std::shared_ptr<LevelBackend>>& blocks) {
  std::vector<Step> steps;
  for (const Issue& issue : order) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Block& block = blocks[i]->block();
      if (block.degree == issue.degree && block.wave == issue.wave) {
        steps.push_back(make_step(issue.phase, block, i));
      }
    }
  }
  return steps;
}

// Numbers are the same either way, so a plan's transports do not bind: peer copies wherever they
// reach, which all ranks have agreed on. Rings and what is inside usp go by collectives.
void choose_transport(const World& world, Block& block) {
  const auto& peers = world.communicator->peers;
  if (peers && block.backend == Backend::kUlysses && block.degree <= peers->reach()) {
    block.transport = Transport::kPeerCopy;
    block.fetch_nanoseconds = peers->fetch_nanoseconds();
  }
}

// The first leaf part covers the exchanges that were issued before the first level's compute.
void add_first_leaf(ProgramRound& round, std::unique_ptr<LevelBackend> first) {
  const auto before = std::ranges::find_if(
      round.steps, [&](const Step& step) { return step.phase == Phase::kCompute; });
  round.steps.insert(before, make_step(Phase::kCompute, first->block(), round.blocks.size()));
  round.blocks.push_back(std::move(first));
}

// The longest sequence of the round that a backend without windows runs, on any rank.
std::int64_t longest_zigzag(const Round& round) {
  std::int64_t longest = 0;
  for (const Placement& placement : round.placements) {
    longest = ring_size(way_of(placement)) > 1 ? std::max(longest, placement.tokens) : longest;
  }
  return longest;
}

ProgramRound make_round(World& world, const Round& round, const Heads& heads) {
  const std::int32_t rank = world.communicator->rank();
  std::vector<Block> blocks = make_blocks(round, rank, exchanged_ways(round));
  const std::int32_t leaf_first = round.schedule.leaf_first[static_cast<std::size_t>(rank)];
  Block first = take_first(blocks.back(), leaf_first);
  ProgramRound result{.tokens = first.tokens, .longest_zigzag = longest_zigzag(round)};
  for (Block& block : blocks) {
    result.tokens += block.tokens;
    choose_transport(world, block);
    result.blocks.push_back(
        make_backend(std::move(block), heads, *world.communicator, *world.attention));
  }
  result.steps = make_steps(round.schedule.order, result.blocks);
  if (leaf_first > 0) {
    add_first_leaf(result,
                   make_backend(std::move(first), heads, *world.communicator, *world.attention));
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
  offloaded.most = offloaded.held.load();
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
