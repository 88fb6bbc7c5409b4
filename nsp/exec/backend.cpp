#include "nsp/exec/backend.h"

#include <utility>

namespace nsp {

std::unique_ptr<LevelBackend> make_backend(Block block,
                                           const Heads& heads,
                                           Communicator& communicator,
                                           AttentionKernel& kernel) {
  const Ring ring = ring_of(block, {.query = heads.query, .kv = heads.kv});
  switch (block.backend) {
    case Backend::kLocal:
      break;
    case Backend::kUlysses:
      return make_ulysses(std::move(block), split_heads(heads, block.degree), communicator, kernel);
    case Backend::kGather:
      return make_gather(std::move(block), ring, heads.kv, communicator, kernel);
    case Backend::kRing:
      return make_ring(std::move(block), ring, heads.kv, communicator, kernel);
    case Backend::kUspRing:
    case Backend::kUspGather:
      return make_usp(std::move(block), split_heads(heads, block.inner), communicator, kernel);
  }
  return make_local(std::move(block), kernel);
}

}  // namespace nsp
