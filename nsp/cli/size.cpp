#include "nsp/cli/size.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace nsp {
namespace {

constexpr double kMost = 0x1p62;
constexpr std::array<std::pair<const char*, int>, 5> kUnits = {
    {{"b", 0}, {"kib", 10}, {"mib", 20}, {"gib", 30}, {"tib", 40}}};

std::optional<int> power_of(std::string unit) {
  unit = CLI::detail::to_lower(CLI::detail::trim(unit));
  for (const auto& [name, power] : kUnits) {
    if (unit == name) {
      return power;
    }
  }
  return std::nullopt;
}

// A number without a unit is bytes and must be whole: what it may be is left to the option.
std::string to_bytes(std::string& text) {
  const std::size_t end = text.find_first_not_of("+-0123456789.");
  const bool plain = end == std::string::npos && text.find('.') == std::string::npos;
  const std::optional<int> power = plain ? 0 : power_of(text.substr(std::min(end, text.size())));
  double count = 0;
  if (!power || !CLI::detail::lexical_cast(text.substr(0, end), count) || (!plain && count < 0)) {
    return "'" + text + "' is not a size; give bytes, or such as 1.5GiB or 512MiB";
  }
  const double bytes = std::ldexp(count, *power);
  if (std::abs(bytes) >= kMost) {
    return "'" + text + "' is beyond 2^62 bytes; give less";
  }
  if (!plain) {
    text = std::to_string(static_cast<std::int64_t>(bytes));
  }
  return "";
}

}  // namespace

CLI::Validator size_in_bytes() {
  return {to_bytes, "SIZE"};
}

}  // namespace nsp
