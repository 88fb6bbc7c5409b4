#include "nsp/planner/baselines/flexsp/cut.h"

#include <algorithm>
#include <numeric>

namespace nsp {
namespace {

// Pieces filled one after another up to `most` tokens: the fewest that keep it.
Ends fill(std::span<const std::int64_t> tokens, std::int64_t most) {
  Ends ends;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (sum + tokens[i] > most && i > 0) {
      ends.push_back(i);
      sum = 0;
    }
    sum += tokens[i];
  }
  ends.push_back(tokens.size());
  return ends;
}

// One row of the dynamic programme after another: least[i] is the least deviation of the first i
// distinct lengths in the present number of buckets. The best last cut never moves back as i grows
// (the deviation of a bucket is a Monge function of its ends), so each row is solved by halves.
class Buckets {
 public:
  explicit Buckets(std::span<const std::int64_t> tokens);

  Ends cut(std::size_t most);

 private:
  std::int64_t deviation(std::size_t begin, std::size_t end) const {
    return length_[begin] * static_cast<std::int64_t>(place_[end] - place_[begin]) -
           (sum_[end] - sum_[begin]);
  }
  void solve(std::size_t begin, std::size_t end, std::size_t from, std::size_t to);

  std::vector<std::int64_t> length_;  // distinct
  std::vector<std::size_t> place_;    // of the first of each in the list, and the list's size
  std::vector<std::int64_t> sum_;     // tokens before it
  std::vector<std::int64_t> before_;
  std::vector<std::int64_t> least_;
  std::vector<std::size_t> cut_;
};

Buckets::Buckets(std::span<const std::int64_t> tokens) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i == 0 || tokens[i] != tokens[i - 1]) {
      length_.push_back(tokens[i]);
      place_.push_back(i);
      sum_.push_back(sum);
    }
    sum += tokens[i];
  }
  place_.push_back(tokens.size());
  sum_.push_back(sum);
}

// Fills [begin, end) of a row, whose last cuts lie in [from, to].
void Buckets::solve(std::size_t begin, std::size_t end, std::size_t from, std::size_t to) {
  if (begin >= end) {
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  least_[middle] = INT64_MAX;
  for (std::size_t cut = from; cut <= std::min(to, middle - 1); ++cut) {
    const std::int64_t value = before_[cut] + deviation(cut, middle);
    if (value < least_[middle]) {
      least_[middle] = value;
      cut_[middle] = cut;
    }
  }
  const std::size_t best = cut_[middle];
  solve(begin, middle, from, best);
  solve(middle + 1, end, best, to);
}

Ends Buckets::cut(std::size_t most) {
  const std::size_t size = length_.size();
  const std::size_t count = std::min(most, size);
  std::vector<std::vector<std::size_t>> cuts;
  least_.assign(size + 1, 0);
  cut_.assign(size + 1, 0);
  for (std::size_t i = 1; i <= size; ++i) {
    least_[i] = deviation(0, i);
  }
  cuts.push_back(cut_);
  for (std::size_t row = 1; row < count; ++row) {
    before_ = least_;
    solve(row + 1, size + 1, row, size - 1);
    cuts.push_back(cut_);
  }
  Ends ends;
  std::size_t end = size;
  for (std::size_t row = count; row-- > 0;) {
    ends.push_back(place_[end]);
    end = cuts[row][end];
  }
  std::ranges::reverse(ends);
  return ends;
}

}  // namespace

// The least limit that `count` pieces keep, by halves: filling from the front proves for each limit
// whether they can, so this is the dynamic programme's optimum.
Ends cut_evenly(std::span<const std::int64_t> tokens, std::int64_t count) {
  if (tokens.empty()) {
    return {};
  }
  std::int64_t low = tokens.front();
  std::int64_t high = std::reduce(tokens.begin(), tokens.end(), std::int64_t{0});
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool kept = std::ssize(fill(tokens, middle)) <= count;
    (kept ? high : low) = kept ? middle : middle + 1;
  }
  return fill(tokens, low);
}

Ends cut_buckets(std::span<const std::int64_t> tokens, std::size_t most) {
  return tokens.empty() ? Ends{} : Buckets(tokens).cut(most);
}

}  // namespace nsp
