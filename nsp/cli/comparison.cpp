#include "nsp/cli/comparison.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace nsp {
namespace {

constexpr double kEqual = 1e-9;  // relative: nearer steps are equal
constexpr const char* kRow = "{:<16} {:>9} {:>10} {:>8} {:>12} {:>14}\n";

bool planned(const PlannerRow& row) {
  return std::ranges::any_of(row.batches, [](const auto& batch) { return batch.has_value(); });
}

const PlannerRow* find(const std::vector<PlannerRow>& rows, const std::string& planner) {
  const auto row = std::ranges::find(rows, planner, &PlannerRow::planner);
  return row == rows.end() || !planned(*row) ? nullptr : &*row;
}

// Batches that every planner with any plan has planned.
std::vector<std::size_t> shared_batches(const std::vector<PlannerRow>& rows) {
  std::vector<std::size_t> shared;
  for (std::size_t batch = 0; any_planned(rows) && batch < rows.front().batches.size(); ++batch) {
    if (std::ranges::all_of(rows, [batch](const PlannerRow& row) {
          return !planned(row) || row.batches[batch].has_value();
        })) {
      shared.push_back(batch);
    }
  }
  return shared;
}

// 0: no plan.
double step_seconds(const PlannerRow& row, std::size_t batch) {
  return row.batches[batch].value_or(PlannedBatch{}).step_seconds;
}

double mean_step(const PlannerRow& row, const std::vector<std::size_t>& batches) {
  double sum = 0;
  for (const std::size_t batch : batches) {
    sum += step_seconds(row, batch);
  }
  return sum / static_cast<double>(batches.size());
}

// The least that is proved with any of the rows' backends; 0: nothing is.
double bound_of(const std::vector<PlannerRow>& rows, std::size_t batch) {
  double least = 0;
  for (const PlannerRow& row : rows) {
    const double bound = row.batches[batch].value_or(PlannedBatch{}).bound_seconds;
    least = bound > 0 && (least == 0 || bound < least) ? bound : least;
  }
  return least;
}

double gap(const std::vector<PlannerRow>& rows, const PlannerRow& row, std::size_t batch) {
  const double bound = bound_of(rows, batch);
  return bound > 0 ? row.batches[batch].value_or(PlannedBatch{}).load_seconds / bound - 1 : 0;
}

double mean_gap(const std::vector<PlannerRow>& rows,
                const PlannerRow& row,
                const std::vector<std::size_t>& batches) {
  double sum = 0;
  for (const std::size_t batch : batches) {
    sum += gap(rows, row, batch);
  }
  return sum / static_cast<double>(batches.size());
}

double median_ms(const PlannerRow& row) {
  std::vector<double> ms;
  for (const auto& batch : row.batches) {
    if (batch) {
      ms.push_back(batch->planning_ms);
    }
  }
  std::ranges::sort(ms);
  return ms.empty() ? 0 : ms[ms.size() / 2];
}

// Batches on which `a` is faster than `b`.
std::vector<std::size_t> faster(const PlannerRow& a, const PlannerRow& b) {
  std::vector<std::size_t> batches;
  for (std::size_t batch = 0; batch < a.batches.size(); ++batch) {
    const auto& mine = a.batches[batch];
    const auto& other = b.batches[batch];
    if (mine && other && mine->step_seconds < other->step_seconds * (1 - kEqual)) {
      batches.push_back(batch);
    }
  }
  return batches;
}

struct Means {
  double step_seconds = 0;
  double gap = 0;
  std::optional<double> over_static{};  // none: static has no plan, or the step takes no time
};

// None without a plan, or without a batch that all share.
std::optional<Means> means_of(const std::vector<PlannerRow>& rows,
                              const PlannerRow& row,
                              const std::vector<std::size_t>& shared) {
  if (!planned(row) || shared.empty()) {
    return {};
  }
  Means means{.step_seconds = mean_step(row, shared), .gap = mean_gap(rows, row, shared)};
  const PlannerRow* fixed = find(rows, "static");
  if (fixed != nullptr && means.step_seconds > 0) {
    means.over_static = mean_step(*fixed, shared) / means.step_seconds;
  }
  return means;
}

void append_row(const std::vector<PlannerRow>& rows,
                const PlannerRow& row,
                const std::vector<std::size_t>& shared,
                std::string& out) {
  const PlannerRow* ours = find(rows, "nsp");
  const std::optional<Means> means = means_of(rows, row, shared);
  const bool fixed = means && means->over_static;
  fmt::format_to(
      std::back_inserter(out),
      kRow,
      row.planner,
      means ? fmt::format("{:.4f}", means->step_seconds) : "-",
      fixed ? fmt::format("{:.3f}x", *means->over_static) : "-",
      means ? fmt::format("{:.2f}%", 100 * means->gap) : "-",
      planned(row) ? fmt::format("{:.1f}", median_ms(row)) : "-",
      !planned(row) || ours == nullptr || ours == &row
          ? "-"
          : fmt::format("{} / {}", faster(row, *ours).size(), faster(*ours, row).size()));
}

void append_losses(const std::vector<PlannerRow>& rows, std::string& out) {
  const PlannerRow* ours = find(rows, "nsp");
  if (ours == nullptr) {
    return;
  }
  auto to = std::back_inserter(out);
  bool any = false;
  for (const PlannerRow& row : rows) {
    for (const std::size_t batch : faster(row, *ours)) {
      const double theirs = step_seconds(row, batch);
      const double own = step_seconds(*ours, batch);
      fmt::format_to(to,
                     "batch {}: {} is {:.2f}% faster than nsp ({:.4f} s, nsp {:.4f} s)\n",
                     batch,
                     row.planner,
                     100 * (own / theirs - 1),
                     theirs,
                     own);
      any = true;
    }
  }
  if (!any && rows.size() > 1) {
    out += "nsp is not slower than any of them on any batch\n";
  }
}

void append_missing(const PlannerRow& row, std::string& out) {
  const auto missing =
      std::ranges::count_if(row.batches, [](const auto& batch) { return !batch.has_value(); });
  if (missing > 0) {
    fmt::format_to(std::back_inserter(out),
                   "{}: no plan for {} of {} batches: {}\n",
                   row.planner,
                   missing,
                   row.batches.size(),
                   row.why_none);
  }
}

Json batches_json(const std::vector<PlannerRow>& rows, const PlannerRow& row) {
  Json batches = Json::array();
  for (std::size_t i = 0; i < row.batches.size(); ++i) {
    const auto& batch = row.batches[i];
    batches.push_back(batch ? Json{{"step_seconds", batch->step_seconds},
                                   {"load_seconds", batch->load_seconds},
                                   {"gap", gap(rows, row, i)},
                                   {"planning_ms", batch->planning_ms},
                                   {"rounds", batch->rounds}}
                            : Json());
  }
  return batches;
}

}  // namespace

bool any_planned(const std::vector<PlannerRow>& rows) {
  return std::ranges::any_of(rows, planned);
}

std::string comparison_table(const std::vector<PlannerRow>& rows) {
  const std::vector<std::size_t> shared = shared_batches(rows);
  std::string out =
      fmt::format(kRow, "planner", "step s", "vs static", "gap", "planning ms", "faster/slower");
  for (const PlannerRow& row : rows) {
    append_row(rows, row, shared, out);
  }
  const std::size_t all = rows.empty() ? 0 : rows.front().batches.size();
  fmt::format_to(std::back_inserter(out),
                 "step, vs static and gap: means over {} of {} batches; planning ms: median; "
                 "faster/slower: batches, against nsp\n",
                 shared.size(),
                 all);
  append_losses(rows, out);
  for (const PlannerRow& row : rows) {
    append_missing(row, out);
  }
  return out;
}

Json comparison_json(const std::vector<PlannerRow>& rows) {
  const std::vector<std::size_t> shared = shared_batches(rows);
  const PlannerRow* ours = find(rows, "nsp");
  Json all = Json::array();
  for (const PlannerRow& row : rows) {
    Json json = {{"planner", row.planner}, {"why_none", row.why_none}};
    json["batches"] = batches_json(rows, row);
    if (planned(row)) {
      json["planning_ms"] = median_ms(row);
      json["faster_than_nsp"] = ours == nullptr ? std::vector<std::size_t>{} : faster(row, *ours);
    }
    if (const std::optional<Means> means = means_of(rows, row, shared)) {
      json["step_seconds"] = means->step_seconds;
      json["gap"] = means->gap;
      if (means->over_static) {
        json["over_static"] = *means->over_static;
      }
    }
    all.push_back(json);
  }
  return {{"planners", all}, {"shared_batches", shared}};
}

}  // namespace nsp
