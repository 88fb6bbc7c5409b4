#include "nsp/exec/ring_ranks.h"

namespace nsp {

Ring ring_of(const Block& block, const HeadSplit& heads) {
  const std::int32_t place = block.rank - block.first_rank;
  const std::int32_t inner = place % block.inner;
  const std::int32_t copies = heads.kv == 1 ? static_cast<std::int32_t>(heads.copies) : 1;
  return {.size = block.pieces.ring,
          .index = place / block.inner,
          .first_rank = block.first_rank + inner,
          .stride = block.inner,
          .first_copy = block.rank - inner % copies,
          .copies = copies,
          .copy = inner % copies,
          .level = block.level_degree};
}

}  // namespace nsp
