// Length traces: one token count a line, plain or gzip. Order matters: batches are consecutive
// lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nsp {

// Throws BadInput with path and line for anything that is not an integer >= 1, for an empty file, a
// binary file, and a file that cannot be read.
std::vector<std::int64_t> load_lengths(const std::string& path);

// Lengths in file order, those above max_length dropped (0: none), consecutive until the next one
// would pass batch_tokens; the one that overflows opens the next batch. Only full batches are
// returned. Throws BadInput when max_length > batch_tokens could leave a batch empty.
std::vector<std::vector<std::int64_t>> full_batches(std::span<const std::int64_t> lengths,
                                                    std::int64_t max_length,
                                                    std::int64_t batch_tokens);

}  // namespace nsp
