// nsp-plan/1: a plan as JSON (README of the format: docs/design.md, "Plan").
#pragma once

#include <string>
#include <string_view>

#include "nsp/base/json.h"
#include "nsp/plan/plan.h"

namespace nsp {

std::string_view name(Backend backend);  // local, ulysses, gather, ring, usp-ring, usp-gather
// The other way round; BadInput for another word.
Backend backend_named(std::string_view text);
std::string_view name(Mark mark);            // recompute, offload, save, save_qkv
std::string_view name(Phase phase);          // prologue, compute, epilogue
std::string_view name(Transport transport);  // collective, peer_copy
// "prologue:8", or "prologue:8:short" of the short wave.
std::string text_of(const Issue& issue);

Json to_json(const Plan& plan);
// The bytes of to_json(plan).dump() - sorted keys, no spaces - without the tree of JSON values.
std::string json_text(const Plan& plan);
// Strict: unknown or missing fields, versions, names and types are BadInput that names them.
Plan plan_from_json(const Json& json);
Plan parse_plan(std::string_view text, std::string_view what = "plan");

// XXH3-128 of the canonical JSON (sorted keys, no spaces) without predicted, bound, planning_ms,
// hash.
std::string plan_hash(const Plan& plan);

}  // namespace nsp
