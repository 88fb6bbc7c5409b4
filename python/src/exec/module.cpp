// nsp._exec: the executor for Python. Import torch first (this module needs its libraries).
// The attention itself is the operator torch.ops.nsp.attention.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "nsp/attention/kernels.h"
#include "nsp/comm/board.h"
#include "nsp/comm/c10d.h"
#include "nsp/comm/end_process.h"
#include "nsp/comm/peer_copies.h"
#include "nsp/exec/attention.h"
#include "nsp/exec/buffer_bytes.h"
#include "nsp/exec/program.h"
#include "nsp/exec/stash.h"
#include "nsp/plan/plan_json.h"

namespace py = pybind11;

namespace {

std::shared_ptr<nsp::World> make_world(const std::string& group_name,
                                       const std::string& device,
                                       const std::string& kernel) {
  auto world = std::make_shared<nsp::World>();
  world->attention = nsp::make_attention(at::Device(device), kernel);
  world->communicator = nsp::make_c10d_communicator(group_name);
  return world;
}

void use_peer_copies(nsp::World& world,
                     const std::string& group_name,
                     const std::string& device,
                     std::int32_t reach) {
  world.communicator->peers =
      nsp::make_peer_copies(*world.communicator, group_name, at::Device(device), reach);
}

std::int32_t peer_reach(const nsp::World& world) {
  const auto& peers = world.communicator->peers;
  return peers ? peers->reach() : 1;
}

void watch(nsp::World& world,
           const c10::intrusive_ptr<c10d::Store>& store,
           const std::string& name,
           double limit_seconds,
           const std::string& error_file) {
  const std::chrono::duration<double> limit(limit_seconds);
  world.watchdog =
      std::make_unique<nsp::Watchdog>(*world.communicator,
                                      nsp::Board(store, name, world.communicator->rank()),
                                      std::chrono::duration_cast<std::chrono::milliseconds>(limit),
                                      nsp::end_process(world.communicator, error_file));
}

// The watchdog's last words: the work is done ("closed"), or the process ends before ("left").
void unwatch(nsp::World& world, bool done) {
  if (world.watchdog && done) {
    world.watchdog->close();
  }
  world.watchdog.reset();
}

py::dict counters(const nsp::World& world) {
  py::dict result;
  result["exchanges"] = world.communicator->exchanges.load();
  result["bytes"] = world.communicator->bytes.load();
  result["forward_launches"] = world.attention->forward_launches.load();
  result["backward_launches"] = world.attention->backward_launches.load();
  result["attention_calls"] = world.attention_calls.load();
  result["stash_bytes"] = world.stash.held.load();
  result["stash_bytes_most"] = world.stash.most.load();
  result["offloaded_bytes"] = world.offloaded.held.load();
  result["offloaded_bytes_most"] = world.offloaded.most.load();
  return result;
}

// A program and the handle by which the operator finds it, released with the Python object.
class Schedule {
 public:
  Schedule(std::shared_ptr<nsp::World> world, const std::string& plan, const nsp::Heads& heads)
      : program_(std::make_shared<nsp::Program>(std::move(world), plan, heads)),
        handle_(nsp::add_program(program_)) {}
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  Schedule(Schedule&&) = delete;
  Schedule& operator=(Schedule&&) = delete;
  ~Schedule() { nsp::release_program(handle_); }

  std::int64_t handle() const { return handle_; }
  const nsp::Program& program() const { return *program_; }

 private:
  std::shared_ptr<nsp::Program> program_;
  std::int64_t handle_;
};

std::unique_ptr<Schedule> make_schedule(std::shared_ptr<nsp::World> world,
                                        const py::bytes& plan,
                                        std::int64_t heads,
                                        std::int64_t kv_heads) {
  const std::string text = plan;
  const py::gil_scoped_release release;
  return std::make_unique<Schedule>(
      std::move(world), text, nsp::Heads{.query = heads, .kv = kv_heads});
}

using GivenWay = std::tuple<std::int32_t, std::string, std::int32_t>;

std::vector<nsp::Way> ways_of(const std::vector<GivenWay>& given) {
  std::vector<nsp::Way> ways;
  for (const auto& [degree, backend, inner] : given) {
    ways.push_back({degree, nsp::backend_named(backend), inner});
  }
  return ways;
}

void bind_world(py::module_& module) {
  py::class_<nsp::World, std::shared_ptr<nsp::World>>(
      module, "World", "One process group of its own over all ranks, and what runs on it.")
      .def(py::init(&make_world),
           py::arg("group_name"),
           py::arg("device") = "cpu",
           py::arg("kernel") = "")
      .def_property_readonly("rank",
                             [](const nsp::World& world) { return world.communicator->rank(); })
      .def_property_readonly("kernel",
                             [](const nsp::World& world) { return world.attention->name(); })
      .def(
          "memory_bound",
          [](const nsp::World& world,
             std::int64_t tokens,
             const std::vector<GivenWay>& ways,
             std::int64_t heads,
             std::int64_t kv_heads,
             std::int64_t head_dim,
             std::int64_t value_bytes,
             bool saves) {
            const nsp::MemoryBound bound = nsp::memory_bound(*world.attention,
                                                             {.query = heads, .kv = kv_heads},
                                                             {head_dim, value_bytes},
                                                             tokens,
                                                             ways_of(ways),
                                                             peer_reach(world),
                                                             saves);
            return std::tuple(bound.workspace_bytes, bound.exchange_bytes, bound.arena_bytes);
          },
          "Bytes of workspace, exchange buffers and arena: the most of any plan of these ways "
          "(degree, backend, ulysses_degree) with at most `tokens` rows, that saves attention "
          "output or not.")
      .def_property(
          "streaming",
          [](const nsp::World& world) { return world.streaming.load(); },
          [](nsp::World& world, bool on) { world.streaming = on; },
          "Whether exchanges run beside attention; equal on all ranks.")
      .def("use_peer_copies",
           &use_peer_copies,
           py::arg("group_name"),
           py::arg("device"),
           py::arg("reach"),
           "Levels up to degree `reach` go by peer copies from now on; all ranks alike, before any "
           "plan is compiled.")
      .def_property_readonly("peer_reach", &peer_reach, "1: collectives only.")
      .def_property_readonly("arena_bytes",
                             [](const nsp::World& world) {
                               const auto& peers = world.communicator->peers;
                               return peers ? peers->capacity() : 0;
                             })
      .def(
          "reserve_arena",
          [](nsp::World& world, std::int64_t bytes) {
            if (world.communicator->peers) {
              world.communicator->peers->reserve(bytes);
            }
          },
          py::arg("bytes"),
          py::call_guard<py::gil_scoped_release>(),
          "Collective: memory that neighbours pull from.")
      .def_property_readonly("size",
                             [](const nsp::World& world) { return world.communicator->size(); })
      .def("counters",
           &counters,
           "exchanges, bytes sent to other ranks, launches, attention_calls; what checkpointed "
           "layers keep on the device and on the host, now and at most.")
      .def_property_readonly(
          "host_bytes",
          [](const nsp::World& world) { return world.offload.host_bytes(); },
          "Pinned memory of the host that is held for offloaded attention output, in use or not.")
      .def("reset_counters", &nsp::World::reset_counters)
      .def(
          "begin_step",
          [](nsp::World& world, std::int64_t step) {
            world.communicator->progress.begin_step(step);
          },
          py::arg("step"),
          "Names the step in messages.")
      .def("place",
           [](const nsp::World& world) { return describe(world.communicator->progress.place()); })
      .def("watch",
           &watch,
           py::arg("store"),
           py::arg("name"),
           py::arg("limit_seconds"),
           py::arg("error_file"),
           "Starts the watchdog; the store is its own.")
      .def("unwatch",
           &unwatch,
           py::arg("done"),
           py::call_guard<py::gil_scoped_release>(),
           "Stops it. done: nobody needs to wait for this rank any more.")
      .def(
          "report",
          [](nsp::World& world, const std::string& why) {
            return world.watchdog ? world.watchdog->report(why) : std::string();
          },
          py::arg("why"),
          py::call_guard<py::gil_scoped_release>(),
          "Tells all ranks that this one failed; returns the sentence about the first failure.");
}

void bind_schedule(py::module_& module) {
  py::class_<Schedule>(module, "Schedule", "A plan (its JSON bytes) compiled for this rank.")
      .def(py::init(&make_schedule),
           py::arg("world").none(false),
           py::arg("plan"),
           py::arg("heads"),
           py::arg("kv_heads"))
      .def_property_readonly("handle", &Schedule::handle)
      .def_property_readonly("rounds", [](const Schedule& s) { return s.program().num_rounds(); })
      .def_property_readonly("attention_calls",
                             [](const Schedule& s) { return s.program().attention_calls.load(); })
      .def(
          "tokens",
          [](const Schedule& s, std::int64_t round) { return s.program().round(round).tokens; },
          py::arg("round"),
          "Rows of this rank in a round, the dummy token of an idle rank included.")
      .def(
          "saves",
          [](const Schedule& s, std::int64_t round) {
            return s.program().round(round).recomputed != nullptr;
          },
          py::arg("round"),
          "Whether the round marks placements, on any rank, whose attention is not recomputed.")
      .def(
          "stash_bytes",
          [](const Schedule& s,
             std::int64_t round,
             std::int64_t head_dim,
             std::int64_t value_bytes) {
            const nsp::Program& program = s.program();
            return nsp::stash_bytes(program.round(round), program.heads(), {head_dim, value_bytes});
          },
          py::arg("round"),
          py::arg("head_dim"),
          py::arg("value_bytes"),
          "Bytes that this rank keeps of one checkpointed layer from forward to backward.")
      .def(
          "offload_bytes",
          [](const Schedule& s,
             std::int64_t round,
             std::int64_t head_dim,
             std::int64_t value_bytes) {
            const nsp::Program& program = s.program();
            return nsp::offload_bytes(
                program.round(round), program.heads(), {head_dim, value_bytes});
          },
          py::arg("round"),
          py::arg("head_dim"),
          py::arg("value_bytes"),
          "Bytes of one checkpointed layer that this rank keeps on the host.")
      .def(
          "exchange_bytes",
          [](const Schedule& s,
             std::int64_t round,
             std::int64_t head_dim,
             std::int64_t value_bytes,
             bool backward) {
            const nsp::Program& program = s.program();
            return nsp::exchange_bytes(
                program.round(round), program.heads(), {head_dim, value_bytes}, backward);
          },
          py::arg("round"),
          py::arg("head_dim"),
          py::arg("value_bytes"),
          py::arg("backward"),
          "Most bytes of exchange buffers at once; forward, with what is kept for backward.");
}

void bind_stash(py::module_& module) {
  using nsp::Stash;
  py::class_<Stash, std::shared_ptr<Stash>>(
      module,
      "Stash",
      "What one checkpointed region keeps of its attention; see nsp.checkpointing.")
      .def(py::init<>())
      .def(
          "record",
          [](std::shared_ptr<Stash> stash) {
            nsp::enter_stash(std::move(stash), nsp::StashUse::kRecord);
          },
          "Enters it on this thread for the forward pass.")
      .def(
          "replay",
          [](std::shared_ptr<Stash> stash) {
            nsp::enter_stash(std::move(stash), nsp::StashUse::kReplay);
          },
          "Enters it on this thread for the recomputed forward pass.")
      .def_static("leave", &nsp::leave_stash, "Leaves what this thread entered last.")
      .def_property_readonly("bytes", &Stash::bytes);
}

// `keys`: lengths of the keys, where they are others than the queries'.
nsp::AttentionInputs launch_of(const at::Tensor& q,
                               const at::Tensor& k,
                               const at::Tensor& v,
                               const nsp::Ragged& sequences,
                               double scale,
                               std::int64_t window,
                               const nsp::Ragged* keys,
                               bool causal) {
  return {.q = q,
          .k = k,
          .v = v,
          .sequences = &sequences,
          .scale = scale,
          .window = window,
          .keys = keys,
          .mask = causal ? nsp::Mask::kCausal : nsp::Mask::kFull};
}

// One attention kernel by itself, for tests and benchmarks.
void bind_kernel(py::module_& module) {
  py::class_<nsp::Ragged>(module, "Ragged", "Lengths of sequences that lie one after another.")
      .def(py::init<std::vector<std::int64_t>>(), py::arg("lengths"));
  py::class_<nsp::AttentionKernel>(module, "Kernel", "An attention kernel: cpu, flash or cudnn.")
      .def(py::init([](const std::string& name) {
             const bool on_cpu = name == "cpu";
             return nsp::make_attention(at::Device(on_cpu ? "cpu" : "cuda"), name);
           }),
           py::arg("name"))
      .def("workspace_bytes",
           [](const nsp::AttentionKernel& kernel,
              const std::vector<std::int64_t>& lengths,
              std::int64_t heads,
              std::int64_t kv_heads,
              std::int64_t head_dim,
              std::int64_t value_bytes,
              bool backward) {
             const nsp::Ragged sequences(lengths);
             return kernel.workspace_bytes({.tokens = sequences.tokens(),
                                            .sequences = sequences.count(),
                                            .longest = sequences.longest(),
                                            .heads = heads,
                                            .kv_heads = kv_heads,
                                            .head_dim = head_dim,
                                            .value_bytes = value_bytes},
                                           backward);
           })
      .def(
          "forward",
          [](nsp::AttentionKernel& kernel,
             const at::Tensor& q,
             const at::Tensor& k,
             const at::Tensor& v,
             const nsp::Ragged& sequences,
             double scale,
             std::int64_t window,
             const nsp::Ragged* keys,
             bool causal) {
            at::Tensor out = at::empty(q.sizes(), q.options());
            const at::Tensor lse =
                kernel.forward(launch_of(q, k, v, sequences, scale, window, keys, causal), out);
            return std::pair(out, lse);
          },
          py::arg("q"),
          py::arg("k"),
          py::arg("v"),
          py::arg("sequences"),
          py::arg("scale"),
          py::arg("window"),
          py::arg("keys") = nullptr,
          py::arg("causal") = true)
      .def(
          "backward",
          [](nsp::AttentionKernel& kernel,
             const at::Tensor& q,
             const at::Tensor& k,
             const at::Tensor& v,
             const at::Tensor& out,
             const at::Tensor& lse,
             const at::Tensor& dout,
             const nsp::Ragged& sequences,
             double scale,
             std::int64_t window,
             const nsp::Ragged* keys,
             bool causal) {
            const nsp::AttentionGradients gradients{.dq = at::empty(q.sizes(), q.options()),
                                                    .dk = at::empty(k.sizes(), k.options()),
                                                    .dv = at::empty(v.sizes(), v.options())};
            kernel.backward(launch_of(q, k, v, sequences, scale, window, keys, causal),
                            out,
                            lse,
                            dout,
                            gradients);
            return std::tuple(gradients.dq, gradients.dk, gradients.dv);
          },
          py::arg("q"),
          py::arg("k"),
          py::arg("v"),
          py::arg("out"),
          py::arg("lse"),
          py::arg("dout"),
          py::arg("sequences"),
          py::arg("scale"),
          py::arg("window"),
          py::arg("keys") = nullptr,
          py::arg("causal") = true);
}

}  // namespace

PYBIND11_MODULE(_exec, module) {
  module.doc() = "Execution of plans on torch tensors.";
  module.attr("attention_op") = std::string(nsp::attention_op());
  module.attr("peer_copies") = nsp::has_peer_copies();
  bind_world(module);
  bind_schedule(module);
  bind_stash(module);
  bind_kernel(module);
  module.def("write_error_file",
             &nsp::write_error_file,
             py::arg("path"),
             py::arg("message"),
             "What torchrun's report shows of this rank.");
  module.def(
      "default_kernel",
      [](const std::string& device) {
        return std::string(nsp::default_kernel(at::Device(device)));
      },
      py::arg("device"),
      "The attention kernel that runs on a device unless another is named.");
}
