#include "nsp/base/error.h"
#include "nsp/planner/milp.h"

namespace nsp {

bool has_milp() {
  return false;
}

void require_milp() {
  bad_input("planner",
            "'flexsp'",
            "this build has no MILP solver; pip install highsbox, then build again (make install)");
}

MilpAnswer solve_milp(const Milp& /*milp*/,
                      const MilpLimits& /*limits*/,
                      const std::vector<double>& /*start*/) {
  require_milp();
  return {};
}

}  // namespace nsp
