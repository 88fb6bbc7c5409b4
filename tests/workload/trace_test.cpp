#include "nsp/workload/trace.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <zlib.h>

#include <gtest/gtest.h>

#include "nsp/base/error.h"
#include "nsp/base/json.h"
#include "nsp/base/random.h"
#include "tests/temporary.h"

namespace nsp {
namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

std::string file_with(const std::string& text) {
  const std::string path = temporary_path("file.txt");
  write_file(path, text);
  return path;
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no BadInput";
}

std::string fault_of(const std::string& text) {
  return message([&] { load_lengths(file_with(text)); });
}

std::string trace(const std::string& file) {
  return NSP_SOURCE_DIR "/tests/data/traces/" + file;
}

TEST(Trace, ReadsOneLengthALineInOrder) {
  EXPECT_EQ(load_lengths(file_with("3\n1\r\n 2 \n")), (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(load_lengths(file_with("3\n1")), (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(load_lengths(file_with("3\n1\n\n \r\n")), (std::vector<std::int64_t>{3, 1}));
}

TEST(Trace, ReadsGzip) {
  const std::string path = temporary_path("file.txt.gz");
  const gzFile file = gzopen(path.c_str(), "wb");
  gzputs(file, "5\n7\n");
  gzclose(file);
  EXPECT_EQ(load_lengths(path), (std::vector<std::int64_t>{5, 7}));
}

TEST(Trace, ReadsTheShippedTraces) {
  EXPECT_EQ(load_lengths(trace("flexsp_common_crawl_head.txt")).size(), 6853U);
  EXPECT_EQ(load_lengths(trace("flexsp_github_head.txt")).size(), 7207U);
  const auto wikipedia = load_lengths(trace("flexsp_wikipedia.txt.gz"));
  EXPECT_EQ(wikipedia.size(), 1000000U);
  EXPECT_EQ(std::ranges::max(wikipedia), 1823777);
}

TEST(Trace, BadLinesAreNamed) {
  for (const std::string line : {"12a", "-4", "0", "", "1.5", "+3", "99999999999999999999"}) {
    const std::string fault = fault_of("7\n" + line + "\n9\n");
    EXPECT_NE(fault.find(".txt:2: length '" + line + "' must be an integer from 1"),
              std::string::npos)
        << fault;
  }
}

TEST(Trace, EmptyBinaryAndMissingFilesAreRefused) {
  EXPECT_NE(fault_of("").find("is empty"), std::string::npos);
  EXPECT_NE(fault_of(std::string("1\n\0\x7f", 4)).find("is a binary file"), std::string::npos);
  EXPECT_NE(message([] { load_lengths("/nonexistent"); }).find("cannot be read"),
            std::string::npos);
  EXPECT_NE(message([] { load_lengths(testing::TempDir()); }).find("cannot be read"),
            std::string::npos);
}

// Limit 10: 4+5 fit, 3 would pass 10 and opens the next; 3+7 fill it exactly, 1 opens a third that
// never fills.
TEST(Batches, TheOverflowingSequenceOpensTheNextBatch) {
  const std::vector<std::int64_t> lengths = {4, 5, 3, 7, 1};
  EXPECT_EQ(full_batches(lengths, 0, 10), (Batches{{4, 5}, {3, 7}}));
}

TEST(Batches, LongSequencesAreLeftOutBeforeBatching) {
  const std::vector<std::int64_t> lengths = {4, 9, 5, 3};
  EXPECT_EQ(full_batches(lengths, 8, 10), (Batches{{4, 5}}));
}

TEST(Batches, RefusesALengthThatNoBatchHolds) {
  const std::vector<std::int64_t> lengths = {4, 11, 25, 40};
  EXPECT_NE(message([&] { full_batches(lengths, 30, 10); }).find("longest kept length, 25"),
            std::string::npos);
  EXPECT_THROW(full_batches(lengths, 0, 0), BadInput);
  EXPECT_THROW(full_batches(lengths, -1, 20), BadInput);
}

TEST(Batches, AreConsecutiveAndMaximal) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    std::vector<std::int64_t> lengths(100);
    std::ranges::generate(lengths, [&] { return 1 + static_cast<std::int64_t>(random.below(20)); });
    std::size_t next = 0;
    for (const auto& batch : full_batches(lengths, 0, 40)) {
      for (const std::int64_t length : batch) {
        EXPECT_EQ(length, lengths[next++]) << "seed " << seed;
      }
      const std::int64_t sum = std::accumulate(batch.begin(), batch.end(), std::int64_t{0});
      EXPECT_LE(sum, 40) << "seed " << seed;
      EXPECT_GT(sum + lengths[next], 40) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace nsp
