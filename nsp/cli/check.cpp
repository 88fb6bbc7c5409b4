#include "nsp/plan/check.h"

#include <ostream>
#include <string>

#include "nsp/cli/output.h"
#include "nsp/plan/plan_json.h"

namespace nsp {

int run_check(const FileOptions& options, Streams streams) {
  const Plan plan = parse_plan(read_file(options.plan), options.plan);
  const std::vector<std::string> violations = find_violations(plan);
  std::string table;
  for (const std::string& violation : violations) {
    table += violation + "\n";
  }
  if (violations.empty()) {
    table = "sound: " + std::to_string(plan.num_sequences) +
            (plan.num_sequences == 1 ? " sequence, " : " sequences, ") +
            std::to_string(plan.num_tokens) + (plan.num_tokens == 1 ? " token" : " tokens") +
            ", hash " + plan.hash + "\n";
  }
  write_result(
      options.json, {{"sound", violations.empty()}, {"violations", violations}}, table, streams);
  if (!violations.empty()) {
    streams.err << "nsp: " << options.plan << ": breaks " << violations.size() << " rule"
                << (violations.size() == 1 ? "" : "s") << "; plan again, or undo the edit\n";
  }
  return violations.empty() ? 0 : 1;
}

}  // namespace nsp
