// SPDX-License-Identifier: MIT
// A kernel and an all-gather between two GPUs in the order of streams, again and again: what an iteration costs.
//
//   kernel    the kernel alone: it writes the GPU's part
//   hand      the same copies by hand in the stream of the kernel: copy to the peer, write its word, wait for one's own
//   trigger   by hand as ours: a second stream waits for both kernels, copies, and writes both words
//   carried   collectives::Run::enqueue, by copies in the stream of the kernel, in two turns: nothing by hand
//   ours      collectives::Run::enqueue, or publish before each launch of a graph
//   nccl      ncclAllGather, by kernels, with --nccl yes; then without `hand` in graphs, which the driver refuses
//   nccl-ce   the same by NCCL's copy engines, with NCCL 2.28 where it makes symmetric windows
//   ahead     ours with all rounds published before the time is taken
//
// One process with both GPUs, and a thread for each. `hand` has no word that says that the peer may be written; as
// programs do, it takes one of two buffers in turn. A run is `-n` iterations; runs of all ways alternate; medians of
// `--runs`. Once enqueued one by one, once in graphs of `--graph` iterations. The time ends when the host sees the last
// word of each stream.
#include "stream_order.hpp"

#include "collectives/collectives.hpp"
#include "core/median.hpp"
#include "cuda_graphs.hpp"
#include "must.hpp"
#include "nccl_calls.hpp"
#include "sdma/device/cuda.hpp"
#include "watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

namespace collectives::perf {
namespace {

using namespace sdma;
using namespace std::chrono_literals;
using tool::fail, tool::must;

constexpr auto kStreamPatience = 60s;
constexpr std::uint32_t kGpus = 2, kWarmups = 2;
constexpr std::uint64_t kLine = 64;  ///< bytes between words
constexpr std::uint64_t kStep = 7;   ///< between the values of two iterations

enum Way : std::size_t { kernel, hand, carried, trigger, ours, ahead, nccl, nccl_ce, kWays };
constexpr const char* kNames[] = {"kernel", "hand", "carried", "trigger", "ours", "ahead", "nccl", "nccl-ce"};

/// All threads meet here.
class Barrier {
 public:
  void wait() noexcept {
    const auto turn = turn_.load();
    if (++here_ == kGpus) {
      here_ = 0;
      ++turn_;
    }
    while (turn_ == turn) std::this_thread::yield();
  }

 private:
  std::atomic<std::uint32_t> here_ = 0, turn_ = 0;
};

/// What both GPUs share.
struct TwoGpus {
  CudaDevice& device;
  CudaGraphs cuda;
  std::uint32_t iterations, graph, runs;
  Barrier barrier{};
  std::vector<SignalMemory> memory{};
  std::optional<NcclCalls> nccl{};
  std::array<NcclCalls::Id, 2> ids{};  ///< of the communicators for kernels, and for copy engines
  std::uint64_t most = 0;              ///< bytes of a GPU's part
  std::mutex mutex{};                  ///< of `memory`: both ranks begin with a word

  Signal word() {
    const std::lock_guard lock(mutex);
    return *memory.emplace_back(must(device.create_signal()));
  }
};

/// One size: the plan, and the buffers and words of the ways by hand.
struct Setting {
  std::uint64_t bytes;
  Run run;
  Run two_turns;                        ///< for `carried`
  std::array<Memory, kGpus> buffers{};  ///< two all-gathers, one after the other
  std::array<Memory, kGpus> arrived{};  ///< words for `hand`: one for single iterations, and one for each of a graph
  std::array<Signal, kGpus> finished{}, here{};
  std::array<std::uint32_t, kGpus> epochs{};  ///< of the first of these words

  GpuVa arrival_of(std::uint32_t gpu, std::uint32_t slot) const { return arrived[gpu].va() + slot * kLine; }
  GpuVa part(std::uint32_t buffer, std::uint32_t of, std::uint64_t turn) const {
    return buffers[buffer].va() + (turn * kGpus + of) * bytes;
  }
};

class StreamRank {
 public:
  StreamRank(TwoGpus& w, std::uint32_t gpu)
      : world_(w), cuda_(w.cuda), gpu_(gpu), peer_(1 - gpu), rank_(must(cuda_.rank(static_cast<int>(gpu)))) {
    const auto& self = w.device.gpus()[gpu];
    if (self.physical != gpu) fail("the GPUs are shared: this needs two");
    bounce_ = must(w.device.allocate({.bytes = 64 << 10}));
    if (!w.nccl) return;
    agreed("ncclCommInitRank", w.nccl->init_rank(&comms_[0], kGpus, w.ids[0], static_cast<int>(gpu)));
    if (!w.nccl->copies()) return;
    NcclCalls::Config engines{.cta_policy = NcclCalls::kNoKernels};
    agreed("ncclCommInitRankConfig",
           w.nccl->init_rank_config(&comms_[1], kGpus, w.ids[1], static_cast<int>(gpu), &engines));
    constexpr std::uint64_t kUnit = 2 << 20;  // windows are multiples of it
    const auto bytes = (kGpus * w.most + kUnit - 1) / kUnit * kUnit;
    agreed("ncclMemAlloc", w.nccl->allocate(&window_, bytes));
    NcclCalls::Window made{};
    agreed("ncclCommWindowRegister", w.nccl->register_window(comms_[1], window_, bytes, &made, NcclCalls::kSymmetric));
    copies_ = made != nullptr;
  }

  /// Median microseconds of an iteration, for each way; 0: not measured.
  std::array<double, kWays> measure(Setting& s, bool graphs) {
    std::array<std::vector<double>, kWays> times;
    std::array<CudaGraphs::GraphExec, kWays> first{}, second{};
    rounds_ = must(s.run.graph(gpu_, graphs ? world_.graph : world_.iterations));
    turns_ = must(s.two_turns.graph(gpu_, graphs ? world_.graph : world_.iterations));
    if (graphs)
      for (std::size_t way = 0; way < kWays; ++way)
        if (has(way, graphs)) capture(s, way, first[way], second[way]);
    for (std::uint32_t run = 0; run < world_.runs + kWarmups; ++run)
      for (std::size_t way = 0; way < kWays; ++way) {
        if (!has(way, graphs)) continue;
        if (way == ahead)
          for (std::uint32_t i = 0; i < world_.iterations; i += rounds_.iterations) publish(s);
        world_.barrier.wait();
        const auto begin = Deadline::Clock::now();
        if (graphs) {
          for (std::uint32_t i = 0; i < world_.iterations; i += world_.graph) {
            if (way == ours) publish(s);
            good("cuGraphLaunch", cuda_.launch_graph(first[way], rank_.stream));
            if (second[way]) good("cuGraphLaunch", cuda_.launch_graph(second[way], rank_.second));
          }
        } else {
          // Values of words differ between neighbours, across runs, too.
          const std::uint32_t base = 1 + run % 2 * world_.iterations;
          for (std::uint32_t i = 0; i < world_.iterations; ++i) {
            if (way == trigger) react(s, base + i);
            iterate(s, way, i, base + i, true);
          }
        }
        end();
        const std::chrono::duration<double, std::micro> took = Deadline::Clock::now() - begin;
        if (run >= kWarmups) times[way].push_back(took.count() / world_.iterations);
        world_.barrier.wait();
        if (way != kernel) check(s, way, graphs ? world_.graph : world_.iterations);
        world_.barrier.wait();
      }
    for (const auto* all : {&first, &second})
      for (const auto exec : *all)
        if (exec) good("cuGraphExecDestroy", cuda_.destroy_exec(exec));
    std::array<double, kWays> out{};
    for (std::size_t way = 0; way < kWays; ++way)
      if (!times[way].empty()) out[way] = detail::median(times[way]);
    return out;
  }

 private:
  /// With NCCL in the process, the driver refuses to launch a graph of a kernel, copies and words: invalid value.
  bool has(std::size_t way, bool graphs) const {
    if (way == nccl) return world_.nccl.has_value();
    return way == nccl_ce ? copies_ : way != hand || !graphs || !world_.nccl;
  }
  void agreed(const char* call, NcclCalls::Status s) const {
    if (s != NcclCalls::kSuccess) fail(fmt::format("{}: {}", call, world_.nccl->error_string(s)));
  }
  void good(const char* call, CudaGraphs::Status s) const {
    if (auto r = cuda_.good(call, s); !r) fail(r.error());
  }
  StreamCalls calls() { return ordered_.calls(); }
  void good(const Result<void, Diagnostic>& r) const {
    if (!r) fail(r.error());
  }
  void write(CudaGraphs::Stream s, GpuVa w, std::uint32_t v) {
    good("cuStreamWriteValue32", cuda_.write_value(s, w.value, v, 0));
  }
  void wait(CudaGraphs::Stream s, GpuVa w, std::uint32_t v) {
    good("cuStreamWaitValue32", cuda_.wait_value(s, w.value, v, CudaGraphs::kEqual));
  }
  void publish(Setting& s) {
    if (auto r = s.run.publish(gpu_, rounds_, Deadline::in(kStreamPatience)); !r) fail(r.error());
  }

  /// Where an iteration's kernel writes, and where the peer's part arrives.
  GpuVa mine(const Setting& s, std::size_t way, std::uint32_t i) const {
    if (way == nccl_ce) return GpuVa{reinterpret_cast<std::uint64_t>(window_)} + gpu_ * s.bytes;
    if (way == carried)
      return s.two_turns.bound().address(s.two_turns.plan().inputs[gpu_]) + gpu_ * s.bytes +
             i % 2 * turn_bytes(s.two_turns.plan().options);
    return way == ours || way == ahead ? s.run.bound().address(s.run.plan().inputs[gpu_]) + gpu_ * s.bytes
                                       : s.part(gpu_, gpu_, way == hand ? i % 2 : 0);
  }
  GpuVa arrival(const Setting& s, std::size_t way, std::uint32_t i) const {
    return GpuVa{mine(s, way, i).value + s.bytes * peer_ - s.bytes * gpu_};
  }

  /// What the stream of the kernel gets of an iteration; `value` is that of the words by hand.
  void iterate(Setting& s, std::size_t way, std::uint32_t i, std::uint32_t value, bool enqueue) {
    good("cuLaunchKernel", cuda_.produce(rank_, mine(s, way, i).value, s.bytes / 4, i * kStep + gpu_));
    switch (way) {
      case hand: {
        good("cuMemcpyAsync",
             cuda_.copy(s.part(peer_, gpu_, i % 2).value, s.part(gpu_, gpu_, i % 2).value, s.bytes, rank_.stream));
        // The peer may be one iteration ahead. In a graph, where values repeat, each iteration has its own word.
        const auto slot = enqueue ? 0 : i + 1, wanted = enqueue ? ++s.epochs[gpu_] : 1;
        write(rank_.stream, s.arrival_of(peer_, slot), wanted);
        good("cuStreamWaitValue32",
             cuda_.wait_value(rank_.stream, s.arrival_of(gpu_, slot).value, wanted, CudaGraphs::kAtLeast));
        if (!enqueue) write(rank_.stream, s.arrival_of(gpu_, (i + world_.graph - 2) % world_.graph + 1), 0);
        break;
      }
      case trigger:
        write(rank_.stream, s.here[gpu_].va, value);
        wait(rank_.stream, s.finished[gpu_].va, value);
        wait(rank_.stream, s.finished[peer_].va, value);
        break;
      case carried:
        good(enqueue ? s.two_turns.enqueue(gpu_, ordered_.carrying(), Deadline::in(kStreamPatience))
                     : s.two_turns.pass(gpu_, ordered_.carrying(), turns_, i));
        break;
      case ours:
        if (enqueue) {
          good(s.run.enqueue(gpu_, calls(), Deadline::in(kStreamPatience)));
          break;
        }
        [[fallthrough]];
      case ahead: good(s.run.pass(gpu_, calls(), rounds_, i)); break;
      case nccl:
      case nccl_ce: {
        auto* const from = reinterpret_cast<std::byte*>(mine(s, way, i).value);
        agreed("ncclAllGather", world_.nccl->symmetric(from, from - gpu_ * s.bytes, s.bytes, NcclCalls::kBytes,
                                                       comms_[way - nccl], rank_.stream));
        break;
      }
      default: break;
    }
  }
  /// The second stream of `trigger`.
  void react(Setting& s, std::uint32_t value) {
    wait(rank_.second, s.here[gpu_].va, value);
    wait(rank_.second, s.here[peer_].va, value);
    good("cuMemcpyAsync", cuda_.copy(s.part(peer_, gpu_, 0).value, s.part(gpu_, gpu_, 0).value, s.bytes, rank_.second));
    write(rank_.second, s.finished[gpu_].va, value);
  }

  void capture(Setting& s, std::size_t way, CudaGraphs::GraphExec& first, CudaGraphs::GraphExec& second) {
    const auto made = [&](CudaGraphs::Stream stream, CudaGraphs::GraphExec& out, const std::function<void()>& what) {
      constexpr int kThreadLocal = 1;
      CudaGraphs::Graph graph{};
      good("cuStreamBeginCapture", cuda_.begin_capture(stream, kThreadLocal));
      what();
      good("cuStreamEndCapture", cuda_.end_capture(stream, &graph));
      good("cuGraphInstantiate", cuda_.instantiate(&out, graph, 0));
      good("cuGraphDestroy", cuda_.destroy_graph(graph));
    };
    made(rank_.stream, first, [&] {
      for (std::uint32_t i = 0; i < world_.graph; ++i) iterate(s, way, i, i + 1, false);
      if (way == carried) good(s.two_turns.close(gpu_, ordered_.carrying(), turns_));
      if (way == ours || way == ahead) good(s.run.close(gpu_, calls(), rounds_));
    });
    if (way == trigger)
      made(rank_.second, second, [&] {
        for (std::uint32_t i = 0; i < world_.graph; ++i) react(s, i + 1);
      });
    world_.barrier.wait();
  }

  /// Until the stream has come here.
  void end() {
    write(rank_.stream, end_.va, ++ended_);
    if (sdma::wait(end_, Compare::eq, ended_, Deadline::in(kStreamPatience))) return;
    good("cuStreamQuery", cuda_.stream_query(rank_.stream));
    fail(fmt::format("gpu{}: the stream does not come to its end", gpu_));
  }

  /// The peer's part of the last iteration has arrived: its first and last bytes.
  void check(const Setting& s, std::size_t way, std::uint32_t iterations) {
    const auto i = iterations - 1;
    const auto n = std::min<std::uint64_t>(s.bytes, bounce_.bytes());
    const auto words = bounce_.as<std::uint32_t>();
    for (const auto at : {std::uint64_t{0}, s.bytes - n}) {
      good("cuMemcpyAsync", cuda_.copy(bounce_.va().value, (arrival(s, way, i) + at).value, n, rank_.stream));
      end();
      for (std::uint64_t k = 0; k < n / 4; ++k)
        if (words[k] != static_cast<std::uint32_t>(i * kStep + peer_ + at / 4 + k))
          fail(fmt::format("{}: gpu{} has {} in word {} of its peer's {} bytes", kNames[way], gpu_, words[k],
                           at / 4 + k, s.bytes));
    }
  }

  TwoGpus& world_;
  const CudaGraphs& cuda_;
  std::uint32_t gpu_, peer_;
  CudaGraphs::Rank rank_;
  CudaOrdered ordered_{&cuda_, rank_.stream};
  StreamGraph rounds_{}, turns_{};  ///< of `ours` and `ahead`, and of `carried`
  std::array<NcclCalls::Comm, 2> comms_{};
  void* window_{};       ///< an all-gather, for copy engines
  bool copies_ = false;  ///< NCCL copies by engines here
  Memory bounce_{};
  Signal end_ = world_.word();
  std::uint32_t ended_ = 0;
};

Setting setting(TwoGpus& w, std::uint64_t bytes) {
  const auto run = [&](std::uint32_t turns) {
    const collectives::Options o{.collective = collectives::Collective::all_gather,
                                 .variant = collectives::Variant::pcpy,
                                 .prelaunch = collectives::Prelaunch::stream,
                                 .completion = collectives::Completion::fence,
                                 .gpus = kGpus,
                                 .bytes = kGpus * bytes,
                                 .turns = turns,
                                 .ring_bytes = 256 << 10};
    auto made = Run::prepare(must(collectives::plan(o)), w.device);
    if (!made) fail(made.error().front());
    return *std::move(made);
  };
  Setting s{.bytes = bytes, .run = run(1), .two_turns = run(2)};
  for (std::uint32_t g = 0; g < kGpus; ++g) {
    s.buffers[g] = must(w.device.allocate({.where = GpuId{g}, .bytes = 2 * kGpus * bytes, .host_access = false}));
    for (auto* word : {&s.finished[g], &s.here[g]}) *word = w.word();
    s.arrived[g] = must(w.device.allocate({.bytes = (w.graph + 1) * kLine, .purpose = Purpose::words}));
  }
  return s;
}

}  // namespace

StreamTimes time_streams(const StreamOptions& o) {
  const auto device = must(CudaDevice::open());
  if (device->physical_gpus() < kGpus) fail("this needs two NVIDIA GPUs");
  TwoGpus world{.device = *device,
                .cuda = must(CudaGraphs::load<CudaGraphs>()),
                .iterations = o.iterations,
                .graph = o.graph,
                .runs = o.runs};
  if (o.nccl) {
    const auto library = must(NcclCalls::find(Rival::nccl));
    world.nccl = must(NcclCalls::load(library, Collective::all_gather));
    for (auto& id : world.ids)
      if (world.nccl->get_unique_id(&id) != NcclCalls::kSuccess) fail("ncclGetUniqueId fails");
    world.most = *std::max_element(o.sizes.begin(), o.sizes.end());
  }
  StreamTimes out;
  for (std::size_t way = 0; way < kWays; ++way)
    if (way < nccl || world.nccl) out.ways.emplace_back(kNames[way]);
  std::array<std::array<double, kWays>, kGpus> measured{};
  const auto note = [&](bool graphs, std::uint64_t bytes) {
    auto& row = out.rows.emplace_back(StreamTimes::Row{.bytes = bytes, .graphs = graphs});
    for (std::size_t way = 0; way < out.ways.size(); ++way) {
      const auto us = std::max(measured[0][way], measured[1][way]);
      row.us.push_back(us == 0 ? std::nullopt : std::optional(us));
    }
  };
  std::array<std::thread, kGpus> threads;
  Barrier& barrier = world.barrier;
  // One size at a time: an engine has few queues.
  std::optional<Setting> s;
  const auto of_rank = [&](std::uint32_t g) {
    StreamRank rank(world, g);
    for (const auto bytes : o.sizes) {
      if (g == 0) s.emplace(setting(world, bytes));
      barrier.wait();
      for (const bool graphs : {false, true}) {
        measured[g] = rank.measure(*s, graphs);
        barrier.wait();
        if (g == 0) note(graphs, s->bytes);
        barrier.wait();
      }
      if (g == 0) s.reset();
    }
    return 0;
  };
  for (std::uint32_t g = 0; g < kGpus; ++g)
    threads[g] = std::thread([&, g] {
      // The other thread waits for this one, so an error ends both.
      if (const int code = tool::to_the_end([&] { return of_rank(g); }); code != 0) end_at_once(code);
    });
  for (auto& t : threads) t.join();
  return out;
}

}  // namespace collectives::perf
