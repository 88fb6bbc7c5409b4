// Load over bound and planning time of every planner on full batches of the three public traces.
//
//   planner_quality TRACES_DIR [BATCHES] [PLANNER[/EFFORT] ...]
//
// One Markdown table: a row for each trace, model and maximum length, averaged over its batches of
// 2M tokens on 64 ranks; a cell is "gap % (p50 / p99 ms)", gap = load / bound - 1. 30B runs with
// sp_max 32, 235B with 64, token budget 1.2 x mean.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "nsp/cost/make_profile.h"
#include "nsp/planner/planner.h"
#include "nsp/workload/trace.h"

namespace nsp {
namespace {

constexpr std::int64_t kBatchTokens = 2097152;

struct Column {
  std::string planner;
  std::string effort;
  std::vector<double> cell_gaps{};
  std::vector<double> loads{};  // seconds, of all batches in order
  std::vector<double> ms{};
};

struct Cell {
  std::string title;
  ModelShape shape;
  Profile profile;
  std::int32_t sp_max = 1;
  std::vector<std::vector<std::int64_t>> batches;
};

Column column_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  return {.planner = text.substr(0, slash),
          .effort = slash == std::string::npos ? "default" : text.substr(slash + 1)};
}

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(part * last))];
}

struct Measured {
  double gap = 0;  // mean
  double worst = 0;
  std::vector<double> ms;
  std::vector<double> loads;
};

Measured measure(const Cell& cell, const Column& column) {
  Measured measured;
  for (const auto& lengths : cell.batches) {
    const PlanResult result = plan({.lengths = lengths,
                                    .world = 64,
                                    .sp_max = cell.sp_max,
                                    .planner = column.planner,
                                    .effort = column.effort},
                                   cell.shape,
                                   cell.profile);
    const double load = result.plan.predicted.forward + result.plan.predicted.backward;
    const double gap = load / result.plan.bound_seconds - 1;
    measured.gap += gap / static_cast<double>(cell.batches.size());
    measured.worst = std::max(measured.worst, gap);
    measured.ms.push_back(result.plan.planning_ms);
    measured.loads.push_back(load);
  }
  return measured;
}

std::vector<Cell> cells_of(const std::string& folder, std::size_t most) {
  std::vector<Cell> cells;
  for (const char* model : {"qwen3-30b-a3b", "qwen3-235b-a22b"}) {
    for (const std::int64_t max_length : {196608, 393216}) {
      for (const char* trace :
           {"flexsp_common_crawl_head.txt", "flexsp_github_head.txt", "flexsp_wikipedia.txt.gz"}) {
        const ModelShape shape = find_model(model);
        auto batches = full_batches(load_lengths(folder + "/" + trace), max_length, kBatchTokens);
        batches.resize(std::min(batches.size(), most));
        const std::string name = std::string(trace).substr(7, std::string(trace).find('.') - 7);
        cells.push_back(
            {.title = fmt::format("{} {}K {} ({})",
                                  std::string(model).substr(6, std::string(model).find('b') - 5),
                                  max_length / 1024,
                                  name,
                                  batches.size()),
             .shape = shape,
             .profile = find_profile(shape, "h200"),
             .sp_max = shape.heads == 32 ? 32 : 64,
             .batches = std::move(batches)});
      }
    }
  }
  return cells;
}

void print_row(const Cell& cell, std::vector<Column>& columns) {
  fmt::print("| {} |", cell.title);
  for (Column& column : columns) {
    const Measured measured = measure(cell, column);
    column.cell_gaps.push_back(measured.gap);
    column.loads.insert(column.loads.end(), measured.loads.begin(), measured.loads.end());
    column.ms.insert(column.ms.end(), measured.ms.begin(), measured.ms.end());
    fmt::print(" {:.2f} (worst {:.1f}; {:.1f} / {:.1f}) |",
               100 * measured.gap,
               100 * measured.worst,
               percentile(measured.ms, 0.5),
               percentile(measured.ms, 0.99));
  }
  fmt::print("\n");
}

// Batches where another column has a smaller load.
int beaten(const Column& column, const std::vector<Column>& columns) {
  int count = 0;
  for (std::size_t i = 0; i < column.loads.size(); ++i) {
    count += std::ranges::any_of(columns, [&](const Column& other) {
      return other.planner != column.planner && other.loads[i] < column.loads[i] * (1 - 1e-12);
    });
  }
  return count;
}

void print_summary(const std::vector<Column>& columns) {
  fmt::print("| geometric mean, worst cell |");
  for (const Column& column : columns) {
    double sum = 0;
    for (const double gap : column.cell_gaps) {
      sum += std::log1p(gap);
    }
    const double mean = std::expm1(sum / static_cast<double>(column.cell_gaps.size()));
    fmt::print(" {:.2f}, {:.2f} |", 100 * mean, 100 * std::ranges::max(column.cell_gaps));
  }
  fmt::print("\n| ms of all batches, p50 / p99 |");
  for (const Column& column : columns) {
    fmt::print(" {:.1f} / {:.1f} |", percentile(column.ms, 0.5), percentile(column.ms, 0.99));
  }
  fmt::print("\n| batches on which another planner has less load |");
  for (const Column& column : columns) {
    fmt::print(" {} of {} |", beaten(column, columns), column.loads.size());
  }
  fmt::print("\n");
}

int run(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: planner_quality TRACES_DIR [BATCHES] [PLANNER[/EFFORT] ...]\n");
    return 2;
  }
  const std::size_t batches = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 20;
  std::vector<Column> columns;
  for (int i = 3; i < count; ++i) {
    columns.push_back(column_of(arguments[i]));
  }
  if (columns.empty()) {
    for (const char* name : {"static",
                             "megatron-dcp",
                             "nsp-2l",
                             "algorithm1",
                             "nsp/fast",
                             "nsp/default",
                             "nsp/thorough"}) {
      columns.push_back(column_of(name));
    }
  }
  std::string rule = "|---|";
  fmt::print("| cell (batches) |");
  for (const Column& column : columns) {
    fmt::print(" {}{} |", column.planner, column.planner == "nsp" ? " " + column.effort : "");
    rule += "---|";
  }
  fmt::print("\n{}\n", rule);
  for (const Cell& cell : cells_of(arguments[1], batches)) {
    print_row(cell, columns);
  }
  print_summary(columns);
  return 0;
}

}  // namespace
}  // namespace nsp

int main(int count, char** arguments) {
  return nsp::run(count, arguments);
}
