#include "nsp/exec/recomputed.h"

#include <algorithm>

namespace nsp {
namespace {

std::shared_ptr<LevelBackend> make_saved(World& world,
                                         const std::shared_ptr<LevelBackend>& whole,
                                         const Parts& parts,
                                         const Heads& heads) {
  const std::int32_t degree = whole->block().degree;
  if (!parts.any_saved) {
    return whole;
  }
  if (degree == 1) {
    return make_saved_local(whole, parts, *world.attention);
  }
  return make_saved_ulysses(
      whole, parts, split_heads(heads, degree), *world.communicator, *world.attention);
}

}  // namespace

std::unique_ptr<ProgramRound> make_recomputed(World& world,
                                              const Round& round,
                                              const Heads& heads,
                                              const ProgramRound& whole) {
  const std::int32_t rank = world.communicator->rank();
  std::int64_t before = round.schedule.leaf_first[static_cast<std::size_t>(rank)];
  auto result = std::make_unique<ProgramRound>();
  for (const std::shared_ptr<LevelBackend>& backend : whole.blocks) {
    const Block& block = backend->block();
    if (block.degree > 1 && block.backend != Backend::kUlysses) {  // keeps nothing
      Parts& parts = result->parts.emplace_back();
      parts.rest = block;
      parts.any_rest = true;
    } else if (block.degree > 1) {
      result->parts.push_back(cut_by_marks(block, block.backend, round, rank));
    } else {  // the leaf, and after it the part of it that runs first
      result->parts.push_back(cut_by_marks(block, Backend::kLocal, round, rank, before));
      before = 0;
    }
    result->blocks.push_back(make_saved(world, backend, result->parts.back(), heads));
  }
  result->tokens = whole.tokens;
  result->steps = whole.steps;
  const bool any = std::ranges::any_of(result->parts, &Parts::any_saved);
  return any ? std::move(result) : nullptr;
}

}  // namespace nsp
