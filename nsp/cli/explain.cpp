#include "nsp/plan/explain.h"

#include <ostream>

#include "nsp/cli/output.h"
#include "nsp/plan/check.h"
#include "nsp/plan/plan_json.h"
#include "nsp/plan/plan_text.h"

namespace nsp {
namespace {

Json to_json(const ClassShare& share) {
  return {{"length", share.length},
          {"degree", share.degree},
          {"backend", name(share.backend)},
          {"sequences", share.sequences},
          {"tokens", share.tokens},
          {"why", share.why}};
}

}  // namespace

int run_explain(const FileOptions& options, Streams streams) {
  const Plan plan = parse_plan(read_file(options.plan), options.plan);
  const std::vector<std::string> violations = find_violations(plan);
  if (!violations.empty()) {
    streams.err << "nsp: " << options.plan << ": " << violations.front() << "; see nsp check\n";
    return 1;
  }
  Json classes = Json::array();
  for (const ClassShare& share : explain(plan)) {
    classes.push_back(to_json(share));
  }
  write_result(
      options.json, {{"hash", plan.hash}, {"classes", classes}}, explanation(plan), streams);
  return 0;
}

}  // namespace nsp
