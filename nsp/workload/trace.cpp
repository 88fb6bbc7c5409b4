#include "nsp/workload/trace.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>
#include <string_view>
#include <zlib.h>

#include "nsp/base/error.h"

namespace nsp {
namespace {

constexpr std::int64_t kMaxLength = std::int64_t{1} << 40;  // keeps rank * tokens far from overflow

// zlib reads plain files too, so one path serves both forms.
std::string read_plain_or_gzip(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) {
    bad_input("trace", path, "cannot be read; give the path of a text file with one length a line");
  }
  std::string text;
  char buffer[1U << 16U];
  int count = 0;
  while ((count = gzread(file.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    bad_input("trace", path, "cannot be read; it is a folder or a broken gzip file");
  }
  return text;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
    line.remove_suffix(1);
  }
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) {
    line.remove_prefix(1);
  }
  return line;
}

// Bytes that a terminal would act on become '?'.
std::string printable(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(result, [](char byte) { return byte < ' ' || byte == 0x7f; }, '?');
  return result;
}

std::int64_t parse_length(std::string_view line, const std::string& path, std::int64_t number) {
  const std::string_view text = trimmed(line);
  std::int64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || length < 1 || length > kMaxLength) {
    throw BadInput(path + ":" + std::to_string(number) + ": length '" +
                   printable(text.substr(0, 40)) + "' must be an integer from 1 to " +
                   std::to_string(kMaxLength));
  }
  return length;
}

std::int64_t longest_kept(std::span<const std::int64_t> lengths, std::int64_t max_length) {
  std::int64_t longest = 0;
  for (const std::int64_t length : lengths) {
    longest = max_length > 0 && length > max_length ? longest : std::max(longest, length);
  }
  return longest;
}

}  // namespace

std::vector<std::int64_t> load_lengths(const std::string& path) {
  const std::string text = read_plain_or_gzip(path);
  if (text.find('\0') != std::string::npos) {
    bad_input("trace", path, "is a binary file; give a text file with one length a line");
  }
  std::vector<std::int64_t> lengths;
  std::string_view rest = text;
  while (!rest.empty() && std::string_view("\r\n \t").find(rest.back()) != std::string_view::npos) {
    rest.remove_suffix(1);  // empty lines at the end
  }
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    lengths.push_back(parse_length(rest.substr(0, end), path, number));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (lengths.empty()) {
    bad_input("trace", path, "is empty; give a text file with one length a line");
  }
  return lengths;
}

std::vector<std::vector<std::int64_t>> full_batches(std::span<const std::int64_t> lengths,
                                                    std::int64_t max_length,
                                                    std::int64_t batch_tokens) {
  if (batch_tokens < 1) {
    bad_input("batch_tokens", batch_tokens, "must be at least 1");
  }
  if (max_length < 0) {
    bad_input("max_length", max_length, "must be at least 1, or 0 for no limit");
  }
  std::vector<std::vector<std::int64_t>> batches;
  std::vector<std::int64_t> batch;
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) {
    if (max_length > 0 && length > max_length) {
      continue;
    }
    if (length > batch_tokens) {
      bad_input("batch_tokens",
                batch_tokens,
                "must be at least the longest kept length, " +
                    std::to_string(longest_kept(lengths, max_length)) +
                    "; raise it or lower max_length");
    }
    if (tokens + length > batch_tokens) {
      batches.push_back(std::move(batch));
      batch.clear();
      tokens = 0;
    }
    batch.push_back(length);
    tokens += length;
  }
  return batches;
}

}  // namespace nsp
