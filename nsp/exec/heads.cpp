#include "nsp/exec/heads.h"

#include <fmt/format.h>
#include <numeric>
#include <string>

#include "nsp/base/error.h"

namespace nsp {

void check_heads(const Heads& heads) {
  if (heads.query < 1) {
    bad_input("heads", heads.query, "must be at least 1");
  }
  if (heads.kv < 1 || heads.query % heads.kv != 0) {
    bad_input("kv_heads", heads.kv, fmt::format("must divide the {} query heads", heads.query));
  }
}

HeadSplit split_heads(const Heads& heads, std::int32_t degree) {
  if (heads.query % degree != 0) {
    std::string allowed = "1";
    for (std::int64_t d = 2; d <= heads.query && heads.query % d == 0; d *= 2) {
      allowed += ", " + std::to_string(d);
    }
    bad_input("degree",
              degree,
              fmt::format(
                  "must divide the {} query heads; allowed degrees are {}", heads.query, allowed));
  }
  const std::int64_t query = heads.query / degree;
  const std::int64_t readers = heads.query / heads.kv;
  // The largest run of query heads that reads one KV head, lies on one rank, and is equal
  // everywhere.
  const std::int64_t run = std::gcd(query, readers);
  return {.query = query, .kv = query / run, .copies = readers / run};
}

}  // namespace nsp
