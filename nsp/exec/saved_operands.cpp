#include "nsp/exec/saved_operands.h"

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "nsp/exec/copy_heads.h"
#include "nsp/exec/rank_heads.h"
#include "nsp/exec/stash.h"
#include "nsp/exec/view.h"

namespace nsp {
namespace {

using at::Tensor;
using Counts = std::vector<std::int64_t>;

}  // namespace

SavedOperands::Section::Section(const Block& block, std::int64_t row_heads)
    : heads(row_heads),
      tokens(block.tokens),
      node(node_rows(block)),
      rank_tokens(block.rank_tokens),
      to_sequences(block.to_sequences) {}

SavedOperands::SavedOperands(const Parts& parts, const HeadSplit& heads)
    : heads_(heads),
      first_rank_(parts.rest.first_rank),
      degree_(parts.rest.degree),
      save_qkv_(parts.save_qkv, 2 * heads.query),
      save_(parts.save, 3 * heads.query + 2 * heads.kv),
      rest_(parts.rest, heads.query) {}

std::int64_t SavedOperands::own_units() const {
  std::int64_t units = 0;
  for (const Section* section : sections()) {
    units += section->heads * section->tokens;
  }
  return units;
}

std::int64_t SavedOperands::units_of(std::size_t rank) const {
  std::int64_t units = 0;
  for (const Section* section : sections()) {
    units += section->heads * section->rank_tokens[rank];
  }
  return units;
}

Counts SavedOperands::send_counts(std::int32_t world) const {
  Counts counts(static_cast<std::size_t>(world), 0);
  std::fill_n(counts.begin() + first_rank_, degree_, own_units());
  return counts;
}

Counts SavedOperands::receive_counts(std::int32_t world) const {
  Counts counts(static_cast<std::size_t>(world), 0);
  for (std::size_t i = 0; i < rest_.rank_tokens.size(); ++i) {
    counts[static_cast<std::size_t>(first_rank_) + i] = units_of(i);
  }
  return counts;
}

Tensor SavedOperands::pack(const BackwardState& state) const {
  const Tensor send = at::empty({degree_ * own_units(), state.dout.size(2)}, state.dout.options());
  HeadCopies copies;
  std::int64_t row = 0, unit = 0;
  for (const Section* section : sections()) {
    if (section->tokens > 0) {
      pack_rows(*section, state, row, unit, send, copies);
    }
    row += section->tokens;
    unit += section->tokens * section->heads;
  }
  copies.run();
  return send;
}

// Writes the section's columns: dout, out, q, k, v, as many as it has.
void SavedOperands::pack_rows(const Section& section,
                              const BackwardState& state,
                              std::int64_t first_row,
                              std::int64_t first_unit,
                              const Tensor& send,
                              HeadCopies& copies) const {
  const RankHeads ranks(section.tokens, degree_, heads_);
  const auto rows = [&](const Tensor& x) { return part(x, 0, first_row, section.tokens); };
  Columns columns{.first = first_unit, .row = section.heads, .rank = own_units()};
  const auto place = [&](const Tensor& from, std::int64_t heads) {
    columns.heads = heads;
    copies.add(from, ranks.packed(send, columns));
    columns.first += heads;
  };
  place(ranks.query(rows(state.dout)), heads_.query);
  if (&section == &save_qkv_) {
    place(ranks.query(rows(state.stashed->out)), heads_.query);
  }
  if (&section == &save_) {
    place(ranks.query(rows(state.out)), heads_.query);
    place(ranks.query(rows(state.q)), heads_.query);
    place(ranks.kv(rows(state.k)), heads_.kv);
    place(ranks.kv(rows(state.v)), heads_.kv);
  }
}

Operands SavedOperands::merge(const BackwardState& state, const Tensor& received) const {
  const std::int64_t rows = save_qkv_.node + save_.node + rest_.node;
  const auto make = [&](std::int64_t heads) {
    return at::empty({rows, heads, received.size(1)}, received.options());
  };
  Operands to{.dout = make(heads_.query),
              .out = make(heads_.query),
              .qkv = make(heads_.query + 2 * heads_.kv)};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sections().size(); ++i) {
    const Section& section = *sections()[i];
    const auto range = [&](const Tensor& x) { return part(x, 0, first, section.node); };
    if (section.node > 0) {
      fill(section,
           state,
           received_rows(received, i),
           {.dout = range(to.dout), .out = range(to.out), .qkv = range(to.qkv)});
    }
    first += section.node;
  }
  return to;
}

// By source: (node rows, heads, head_dim). Copied together unless no other section has rows.
Tensor SavedOperands::received_rows(const Tensor& received, std::size_t index) const {
  const Section& section = *sections()[index];
  const std::int64_t d = received.size(1);
  const auto rows_at = [&](std::int64_t unit, std::int64_t rows) {
    return strided(received, {rows, section.heads, d}, {section.heads * d, d, 1}, unit * d);
  };
  if (section.node * section.heads == received.size(0)) {
    return rows_at(0, section.node);
  }
  std::vector<Tensor> sources;
  std::int64_t source = 0;
  for (std::size_t i = 0; i < section.rank_tokens.size(); ++i) {
    std::int64_t unit = source;
    for (std::size_t before = 0; before < index; ++before) {
      unit += sections()[before]->heads * sections()[before]->rank_tokens[i];
    }
    sources.push_back(rows_at(unit, section.rank_tokens[i]));
    source += units_of(i);
  }
  return at::cat(sources);
}

void SavedOperands::fill(const Section& section,
                         const BackwardState& state,
                         const Tensor& rows,
                         const Operands& to) const {
  const std::int64_t h = heads_.query, qkv = h + 2 * heads_.kv;
  section.to_sequences.apply_into(part(rows, 1, 0, h), to.dout);
  if (&section == &rest_) {
    to.out.copy_(state.saved.out);
    to.qkv.copy_(state.saved.qkv);
    return;
  }
  section.to_sequences.apply_into(part(rows, 1, h, h), to.out);
  if (&section == &save_) {
    section.to_sequences.apply_into(part(rows, 1, 2 * h, qkv), to.qkv);
  } else {
    to.qkv.copy_(state.stashed->qkv);
  }
}

}  // namespace nsp
