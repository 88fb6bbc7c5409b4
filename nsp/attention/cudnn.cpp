// cuDNN's fused attention through cudnn-frontend's graphs, over ragged (packed) sequences. Hopper
// and newer.
//
// One graph serves every batch of a bucket: heads, row strides, number of sequences (next power of
// two: an empty entry costs up to 0.5 us), longest length (coarse: it costs nothing) and, backward,
// tokens (they size the workspace; without the total cuDNN would reserve sequences x longest).
// Building one takes about 0.05 s, so only sequences of one round length (cut at a maximum, most
// often) have a graph of their own length and number: without offsets cuDNN is about 6 % faster.
// libtorch_cuda holds a cudnn_frontend of its own: ours is
// compiled under another name, with hidden symbols.
#define cudnn_frontend nsp_cudnn_frontend
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include "nsp/attention/cudnn.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "nsp/attention/block_copies.h"
#include "nsp/attention/ragged.h"

namespace cudnn_frontend {
// torch has loaded the library already; this is a second reference to it.
void* cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
}  // namespace cudnn_frontend

namespace nsp {
namespace {

namespace fe = cudnn_frontend;
using Attributes = fe::graph::Tensor_attributes;
using TensorPtr = std::shared_ptr<Attributes>;
using Pack = std::unordered_map<std::int64_t, void*>;

// The row tensors of a graph; what follows from one of them is derived from its place here.
enum Rows : std::int64_t { kQ, kK, kV, kOut, kGradOut, kGradQ, kGradK, kGradV, kNumRows };
constexpr std::int64_t kLse = 20;
constexpr std::int64_t kLengths = 21;
constexpr std::int64_t kLseOffsets = 22;
constexpr std::int64_t kKeyLengths = 23;
constexpr std::int64_t uid(Rows rows) {
  return 1 + rows;
}
constexpr std::int64_t offsets_uid(Rows rows) {
  return 10 + rows;
}
constexpr bool of_kv(Rows rows) {
  return rows == kK || rows == kV || rows == kGradK || rows == kGradV;
}

struct Bucket {
  bool backward = false;
  int device = 0;
  at::ScalarType dtype = at::kBFloat16;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t sequences = 1;
  std::int64_t longest = 1;
  std::int64_t longest_keys = 1;
  std::int64_t tokens = 0;
  std::int64_t key_tokens = 0;
  bool own_keys = false;  // the keys of each sequence are counted apart
  bool equal = false;     // all sequences have `longest` tokens: no offsets, no lengths
  Mask mask = Mask::kCausal;
  std::int64_t window = 0;
  double scale = 1;
  std::array<std::int64_t, kNumRows> row{};  // elements from one token to the next

  auto operator<=>(const Bucket&) const = default;
};

struct Built {
  std::shared_ptr<fe::graph::Graph> graph;  // null: cuDNN has none
  std::int64_t workspace_bytes = 0;
};

void expect_good(fe::error_t status, const char* what) {
  TORCH_CHECK(status.is_good(), "cuDNN attention, ", what, ": ", status.get_message());
}

std::int64_t next_power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

// To the next eighth of a power of two: at most 12.5 % more workspace, few graphs.
std::int64_t token_bucket(std::int64_t tokens) {
  const std::int64_t step = std::max<std::int64_t>(1024, next_power_of_two(tokens) / 8);
  return (tokens + step - 1) / step * step;
}

// Lengths that are a multiple of this have graphs of their own where all of a launch are equal.
constexpr std::int64_t kRoundLength = 256;

bool are_round_and_equal(const Ragged& sequences) {
  return sequences.longest() * sequences.count() == sequences.tokens() &&
         sequences.longest() % kRoundLength == 0;
}

std::int64_t length_bucket(std::int64_t longest) {
  std::int64_t bucket = 1024;
  while (bucket < longest) {
    bucket *= 4;
  }
  return bucket;
}

// Makes a graph's tensors.
class Maker {
 public:
  Maker(fe::graph::Graph& graph, const Bucket& bucket) : graph_(graph), bucket_(bucket) {}

  TensorPtr list(std::int64_t id, std::int64_t count, fe::DataType_t type) const {
    return graph_.tensor(Attributes()
                             .set_uid(id)
                             .set_dim({count, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(type));
  }

  TensorPtr input(Rows rows) const { return graph_.tensor(shaped(Attributes(), rows)); }
  void output(const TensorPtr& tensor, Rows rows) const { shaped(tensor->set_output(true), rows); }

  // (T, heads) in float32; (sequences, heads, longest) where backward reads it without offsets:
  // before 9.26 cuDNN reads no other there.
  void shape_lse(Attributes& lse) const {
    const std::int64_t heads = bucket_.heads;
    const std::int64_t longest = bucket_.longest;
    const bool by_heads = bucket_.equal && bucket_.backward;
    lse.set_uid(kLse)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({bucket_.sequences, heads, longest, 1})
        .set_stride({longest * heads, by_heads ? longest : 1, by_heads ? 1 : heads, 1});
    if (!bucket_.equal) {
      lse.set_ragged_offset(offsets(kLseOffsets));
    }
  }

  template <typename Operation>
  Operation& masked(Operation& operation) const {
    operation.set_attn_scale(static_cast<float>(bucket_.scale));
    if (!bucket_.equal) {
      const TensorPtr lengths = list(kLengths, bucket_.sequences, fe::DataType_t::INT32);
      operation.set_padding_mask(true).set_seq_len_q(lengths).set_seq_len_kv(
          bucket_.own_keys ? list(kKeyLengths, bucket_.sequences, fe::DataType_t::INT32) : lengths);
    }
    if (bucket_.mask == Mask::kCausal) {
      // Equal lengths: the same mask, whose hidden blocks backward skips at the top left only.
      operation
          .set_diagonal_alignment(bucket_.own_keys ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                                   : fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0);
    }
    if (bucket_.window > 0) {
      operation.set_diagonal_band_left_bound(static_cast<int>(bucket_.window));
    }
    return operation;
  }

 private:
  TensorPtr offsets(std::int64_t id) const {
    return list(id, bucket_.sequences + 1, fe::DataType_t::INT64);
  }

  Attributes& shaped(Attributes&& tensor, Rows rows) const { return shaped(tensor, rows); }
  Attributes& shaped(Attributes& tensor, Rows rows) const {
    const std::int64_t row = bucket_.row[static_cast<std::size_t>(rows)];
    const std::int64_t longest = of_kv(rows) ? bucket_.longest_keys : bucket_.longest;
    tensor.set_uid(uid(rows))
        .set_dim({bucket_.sequences,
                  of_kv(rows) ? bucket_.kv_heads : bucket_.heads,
                  longest,
                  bucket_.head_dim})
        .set_stride({longest * row, bucket_.head_dim, row, 1});
    return bucket_.equal ? tensor : tensor.set_ragged_offset(offsets(offsets_uid(rows)));
  }

  fe::graph::Graph& graph_;
  const Bucket& bucket_;
};

void add_forward(fe::graph::Graph& graph, const Maker& make) {
  auto operation = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
  auto [out, lse] =
      graph.sdpa(make.input(kQ), make.input(kK), make.input(kV), make.masked(operation));
  make.output(out, kOut);
  make.shape_lse(lse->set_output(true));
}

void add_backward(fe::graph::Graph& graph, const Maker& make, const Bucket& bucket) {
  Attributes stats;
  make.shape_lse(stats);
  auto operation = fe::graph::SDPA_backward_attributes().set_name("attention_backward");
  if (!bucket.equal) {
    operation.set_max_total_seq_len_q(bucket.tokens).set_max_total_seq_len_kv(bucket.key_tokens);
  }
  auto [dq, dk, dv] = graph.sdpa_backward(make.input(kQ),
                                          make.input(kK),
                                          make.input(kV),
                                          make.input(kOut),
                                          make.input(kGradOut),
                                          graph.tensor(stats),
                                          make.masked(operation));
  make.output(dq, kGradQ);
  make.output(dk, kGradK);
  make.output(dv, kGradV);
}

Built build(const Bucket& bucket) {
  Built built{.graph = std::make_shared<fe::graph::Graph>()};
  built.graph
      ->set_io_data_type(bucket.dtype == at::kHalf ? fe::DataType_t::HALF
                                                   : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const Maker make(*built.graph, bucket);
  if (bucket.backward) {
    add_backward(*built.graph, make, bucket);
  } else {
    add_forward(*built.graph, make);
  }
  const fe::error_t status = built.graph->build(at::native::getCudnnHandle(), {fe::HeurMode_t::A});
  if (bucket.equal && status.is_bad()) {
    return {};
  }
  expect_good(status, "building a graph");
  expect_good(built.graph->get_workspace_size(built.workspace_bytes), "asking for its workspace");
  return built;
}

// Heads side by side, as the graphs describe them; tokens may be apart.
bool has_dense_heads(const at::Tensor& x) {
  return x.stride(2) == 1 && x.stride(1) == x.size(2);
}
at::Tensor dense_heads(const at::Tensor& x) {
  return has_dense_heads(x) ? x : x.contiguous();
}

BlockCopy block_copy(const at::Tensor& from, const at::Tensor& to) {
  const auto value = static_cast<std::int64_t>(from.element_size());
  return {.from = from.const_data_ptr(),
          .from_pitch = from.stride(0) * value,
          .to = to.mutable_data_ptr(),
          .to_pitch = to.stride(0) * value,
          .width = from.size(1) * from.size(2) * value,
          .rows = from.size(0)};
}

// Two tensors (T, heads, head_dim) of equal sizes and dense heads.
using Two = std::array<at::Tensor, 2>;

void copy_two(const Two& from, const Two& to) {
  const std::array<BlockCopy, 2> blocks = {block_copy(from[0], to[0]), block_copy(from[1], to[1])};
  copy_blocks(blocks, from[0].device());
}

Two make_two(const at::Tensor& like) {
  return {at::empty(like.sizes(), like.options()), at::empty(like.sizes(), like.options())};
}

// The tensors of one launch, in the places the graph knows.
struct Operands {
  std::array<at::Tensor, kNumRows> rows;
  at::Tensor lse;

  at::Tensor& operator[](Rows index) { return rows[static_cast<std::size_t>(index)]; }
};

class CudnnAttention final : public AttentionKernel {
 public:
  std::string name() const override { return "cudnn"; }
  at::Tensor forward(const AttentionInputs& inputs, const at::Tensor& out) override {
    Operands operands = read(inputs);
    operands.lse =
        at::empty({inputs.q.size(0), inputs.q.size(1)}, inputs.q.options().dtype(at::kFloat));
    operands[kOut] = dense_place(out);
    if (inputs.sequences->count() > 0) {
      launch(inputs, false, operands);
      ++forward_launches;
      deliver(operands[kOut], out);
    }
    return operands.lse;
  }

  void backward(const AttentionInputs& inputs,
                const at::Tensor& out,
                const at::Tensor& lse,
                const at::Tensor& dout,
                const AttentionGradients& gradients) override {
    if (inputs.sequences->count() == 0) {
      return;
    }
    Operands operands = read(inputs);
    // cuDNN's own dk and dv of every query head take rows as far apart as k's, times the heads that
    // share one (9.19: ten times their size for 16 heads beside 2 in a packed row).
    const bool tight = inputs.k.size(1) < inputs.q.size(1) &&
                       !(operands[kK].is_contiguous() && operands[kV].is_contiguous());
    if (tight) {
      const Two close = make_two(operands[kK]);
      copy_two({operands[kK], operands[kV]}, close);
      operands[kK] = close[0];
      operands[kV] = close[1];
    }
    operands.lse = lse.contiguous();
    operands[kOut] = out.contiguous();
    operands[kGradOut] = dout.contiguous();
    operands[kGradQ] = place_like(operands[kQ], gradients.dq);
    const Two targets = {gradients.dk, gradients.dv};
    const Two places = places_like({operands[kK], operands[kV]}, targets);
    operands[kGradK] = places[0];
    operands[kGradV] = places[1];
    launch(inputs, true, operands);
    ++backward_launches;
    deliver(operands[kGradQ], gradients.dq);
    deliver_two(places, targets);
  }

  // Backward: cuDNN's own workspace (seen with 9.19: dq in float32 and two more such arrays, by the
  // bucket of tokens), and copies of dout (dense) and the log-sum-exp (by heads).
  std::int64_t workspace_bytes(const LaunchShape& shape, bool backward) const override {
    // dq in float; where heads share a KV head also dk and dv of every head, and k, v, dk, dv with
    // their rows side by side; dout * out summed over head_dim; and a dense copy of dout and one of
    // the log-sum-exp, should it need them.
    const bool grouped = shape.heads > shape.kv_heads;
    const std::int64_t key_rows = grouped ? 2 * token_bucket(shape.keys()) * shape.head_dim : 0;
    const std::int64_t tight =
        grouped ? 4 * shape.keys() * shape.kv_heads * shape.head_dim * shape.value_bytes : 0;
    const std::int64_t bytes = (token_bucket(shape.tokens) * (shape.head_dim + 1) + key_rows) * 4 +
                               shape.tokens * (shape.head_dim * shape.value_bytes + 4);
    return backward ? shape.heads * bytes + tight : 0;
  }

 private:
  static Operands read(const AttentionInputs& inputs) {
    Operands operands;
    operands[kQ] = dense_heads(inputs.q);
    operands[kK] = dense_heads(inputs.k);
    operands[kV] = dense_heads(inputs.v);
    return operands;
  }

  // Where a result is written: the target itself when the graph can describe it.
  static at::Tensor dense_place(const at::Tensor& target) {
    return has_dense_heads(target) ? target : at::empty(target.sizes(), target.options());
  }
  static void deliver(const at::Tensor& written, const at::Tensor& target) {
    if (!written.is_same(target)) {
      target.copy_(written);
    }
  }

  // cuDNN addresses a gradient by the offsets of its operand (seen with 9.19: another row stride
  // gives wrong gradients without an error), so it is written where the rows lie alike.
  static bool lie_alike(const at::Tensor& operand, const at::Tensor& target) {
    return operand.stride(0) == target.stride(0) && has_dense_heads(target);
  }
  static at::Tensor place_like(const at::Tensor& operand, const at::Tensor& target) {
    return lie_alike(operand, target)
               ? target
               : at::empty_strided(operand.sizes(), operand.strides(), operand.options());
  }

  // The same for dk and dv.
  static Two places_like(const Two& operands, const Two& targets) {
    if (lie_alike(operands[0], targets[0]) && lie_alike(operands[1], targets[1])) {
      return targets;
    }
    if (operands[0].is_contiguous() && operands[1].is_contiguous()) {
      return make_two(operands[0]);
    }
    return {place_like(operands[0], targets[0]), place_like(operands[1], targets[1])};
  }
  static void deliver_two(const Two& written, const Two& targets) {
    if (!written[0].is_same(targets[0]) && !written[1].is_same(targets[1]) &&
        has_dense_heads(targets[0]) && has_dense_heads(targets[1])) {
      copy_two(written, targets);
    } else {
      deliver(written[0], targets[0]);
      deliver(written[1], targets[1]);
    }
  }

  // (T, heads) of equal sequences as (sequences, heads, T / sequences).
  static at::Tensor by_heads(const at::Tensor& lse, std::int64_t sequences) {
    return lse.view({sequences, -1, lse.size(1)}).transpose(1, 2).contiguous();
  }

  static Bucket bucket_of(const AttentionInputs& inputs,
                          bool backward,
                          const Operands& operands,
                          bool equal) {
    const Ragged& sequences = *inputs.sequences;
    const Ragged& keys = inputs.key_sequences();
    Bucket bucket{.backward = backward,
                  .device = inputs.q.device().index(),
                  .dtype = inputs.q.scalar_type(),
                  .heads = inputs.q.size(1),
                  .kv_heads = inputs.k.size(1),
                  .head_dim = inputs.q.size(2),
                  .sequences = next_power_of_two(sequences.count()),
                  .longest = length_bucket(sequences.longest()),
                  .longest_keys = length_bucket(keys.longest()),
                  .tokens = backward ? token_bucket(sequences.tokens()) : 0,
                  .key_tokens = backward ? token_bucket(keys.tokens()) : 0,
                  .own_keys = inputs.keys != nullptr,
                  .equal = equal,
                  .mask = inputs.mask,
                  .window = inputs.window,
                  .scale = inputs.scale};
    if (bucket.equal) {
      bucket.sequences = sequences.count();
      bucket.longest = bucket.longest_keys = sequences.longest();
    }
    for (std::size_t i = 0; i < operands.rows.size(); ++i) {
      bucket.row[i] = operands.rows[i].defined() ? operands.rows[i].stride(0) : 0;
    }
    return bucket;
  }

  void launch(const AttentionInputs& inputs, bool backward, const Operands& operands) {
    const bool equal = inputs.keys == nullptr && are_round_and_equal(*inputs.sequences);
    Bucket bucket = bucket_of(inputs, backward, operands, equal);
    const Built* built = &graph(bucket);
    if (built->graph == nullptr) {
      bucket = bucket_of(inputs, backward, operands, false);
      built = &graph(bucket);
    }
    const at::Device device = inputs.q.device();
    Pack pack;
    const auto offsets = [&](const Ragged& of, std::int64_t row) {
      return of.offsets_on(device, at::kLong, bucket.sequences, row).data_ptr();
    };
    for (std::int64_t i = 0; i < kNumRows; ++i) {
      const at::Tensor& rows = operands.rows[static_cast<std::size_t>(i)];
      if (rows.defined()) {
        const auto place = static_cast<Rows>(i);
        pack[uid(place)] = rows.data_ptr();
        if (!bucket.equal) {
          pack[offsets_uid(place)] =
              offsets(of_kv(place) ? inputs.key_sequences() : *inputs.sequences, rows.stride(0));
        }
      }
    }
    const at::Tensor lse =
        bucket.equal && backward ? by_heads(operands.lse, bucket.sequences) : operands.lse;
    pack[kLse] = lse.data_ptr();
    if (!bucket.equal) {
      pack[kLseOffsets] = offsets(*inputs.sequences, bucket.heads);
      pack[kLengths] = inputs.sequences->lengths_on(device, bucket.sequences).data_ptr();
    }
    if (bucket.own_keys) {
      pack[kKeyLengths] = inputs.keys->lengths_on(device, bucket.sequences).data_ptr();
    }
    const at::Tensor workspace =
        at::empty({built->workspace_bytes}, inputs.q.options().dtype(at::kByte));
    expect_good(built->graph->execute(at::native::getCudnnHandle(), pack, workspace.data_ptr()),
                "launching");
  }

  const Built& graph(const Bucket& bucket) {
    const std::scoped_lock lock(mutex_);
    const auto entry = graphs_.find(bucket);
    return entry != graphs_.end() ? entry->second
                                  : graphs_.emplace(bucket, build(bucket)).first->second;
  }

  std::mutex mutex_;
  std::map<Bucket, Built> graphs_;  // entries are never removed: references stay valid
};

}  // namespace

bool cudnn_built() {
  return true;
}

bool cudnn_supported() {
  return at::cuda::is_available() && at::cuda::getCurrentDeviceProperties()->major >= 9;
}

std::unique_ptr<AttentionKernel> make_cudnn_attention() {
  return std::make_unique<CudnnAttention>();
}

}  // namespace nsp
