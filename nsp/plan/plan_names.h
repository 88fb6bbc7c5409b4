// The words of nsp-plan/1, in the order of their enums. For plan_json.cpp, plan_read.cpp,
// plan_scan.cpp and plan_write.cpp alone.
#pragma once

#include <string_view>

namespace nsp {

constexpr std::string_view kFormat = "nsp-plan/1";
constexpr std::string_view kBackends[] = {
    "local", "ulysses", "gather", "ring", "usp-ring", "usp-gather"};
constexpr std::string_view kMarks[] = {"recompute", "offload", "save", "save_qkv"};
constexpr std::string_view kPhases[] = {"prologue", "compute", "epilogue"};
constexpr std::string_view kShortWave = ":short";  // behind the degree; the long one has no word
constexpr std::string_view kTransports[] = {"collective", "peer_copy"};

}  // namespace nsp
