// From a model shape and a cluster to a profile: the frozen one if there is one, otherwise an
// estimate.
#pragma once

#include <string>

#include "nsp/cluster/cluster.h"
#include "nsp/cost/profile.h"
#include "nsp/workload/model_shape.h"

namespace nsp {

// Parameters of one decoder layer, and those that one token uses.
double layer_parameters(const ModelShape& shape);
double active_layer_parameters(const ModelShape& shape);

// Scales the nearest frozen profile of the same device kind: attention by head_dim and attention
// rates, dense by the parameters a token uses and the dense rate; links are the cluster's. measured
// = false.
Profile make_profile(const ModelShape& shape, const Cluster& cluster);

// `name` is a cluster preset, the path of a profile or cluster file, or inline JSON of either (it
// starts with '{'). Throws BadInput: unknown name (lists the presets), or a profile made for
// another model.
Profile find_profile(const ModelShape& shape, const std::string& name);

}  // namespace nsp
