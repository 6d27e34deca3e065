// SPDX-License-Identifier: MIT
// Packets and collectives in the order of CUDA's streams, eager and in graphs that are replayed. A kernel adds 1 to a
// word, engines carry it on, and the stream brings it back: a round that begins early, or is not waited for, loses an
// addition.
#include "collectives/collectives.hpp"
#include "examples/streams/cuda.hpp"
#include "sdma/device/cuda.hpp"
#include "support/catch.hpp"

#include <dlfcn.h>

using namespace sdma;

namespace {

constexpr const char* kKernels = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add_32(.param .u64 address, .param .u64 value, .param .u64 compare)
{
  .reg .b64 %a, %v;
  .reg .b32 %x, %y;
  ld.param.u64 %a, [address];
  ld.param.u64 %v, [value];
  cvt.u32.u64 %x, %v;
  atom.global.add.u32 %y, [%a], %x;
  ret;
}
)";

/// libcuda's functions, found when they are first needed.
template <class F> F* cuda(const char* name) {
  using Find = int (*)(const char*, void**, int, std::uint64_t, int*);
  static const auto find =
      reinterpret_cast<Find>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE), "cuGetProcAddress_v2"));
  void* at = nullptr;
  int found = 0;
  REQUIRE(find(name, &at, 12000, 0, &found) == 0);
  REQUIRE(at);
  return reinterpret_cast<F*>(at);
}
#define CUDA(name, type, ...) REQUIRE(cuda<int type>(#name)(__VA_ARGS__) == 0)

Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }

using GraphExec = void*;

/// A stream of a GPU, whose context is current while it lives.
class Stream {
 public:
  explicit Stream(int gpu) : gpu_(gpu) {
    CUDA(cuDevicePrimaryCtxRetain, (void**, int), &context_, gpu_);
    const Current here(*this);
    CUDA(cuStreamCreateWithPriority, (CUstream*, unsigned, int), &stream_, 1, 0);
    void* module = nullptr;
    CUDA(cuModuleLoadData, (void**, const void*), &module, kKernels);
    CUDA(cuModuleGetFunction, (void**, void*, const char*), &add_, module, "add_32");
  }
  struct Current {
    explicit Current(const Stream& s) { CUDA(cuCtxPushCurrent, (void*), s.context_); }
    ~Current() {
      void* old = nullptr;
      CUDA(cuCtxPopCurrent, (void**), &old);
    }
  };

  StreamCalls calls() const { return cuda_stream(stream_); }
  StreamCalls copying() const { return cuda_stream_that_copies(stream_); }
  void add_one(GpuVa word) const {
    std::uint64_t at = word.value, one = 1, none = 0;
    void* arguments[] = {&at, &one, &none};
    CUDA(cuLaunchKernel,
         (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**), add_,
         1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr);
  }
  void copy(GpuVa to, GpuVa from, std::size_t bytes) const {
    CUDA(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, std::size_t, CUstream), to.value, from.value, bytes, stream_);
  }
  template <class Record> GraphExec capture(Record record) const {
    void* graph = nullptr;
    GraphExec ready = nullptr;
    CUDA(cuStreamBeginCapture, (CUstream, int), stream_, 1);
    record();
    CUDA(cuStreamEndCapture, (CUstream, void**), stream_, &graph);
    CUDA(cuGraphInstantiateWithFlags, (void**, void*, unsigned long long), &ready, graph, 0);
    return ready;
  }
  void launch(GraphExec g) const { CUDA(cuGraphLaunch, (void*, CUstream), g, stream_); }
  /// Everything so far is complete.
  void finish(Device& d) const {
    const auto end = *d.create_signal();
    REQUIRE(cuStreamWriteValue32(stream_, end->va.value, 1, 0) == 0);
    REQUIRE(wait(*end, Compare::eq, 1, soon()));
  }

 private:
  int gpu_;
  void *context_ = nullptr, *add_ = nullptr;
  CUstream stream_{};
};

std::unique_ptr<CudaDevice> device() {
  auto d = CudaDevice::open();
  if (!d) FAIL(to_string(d.error()));
  return std::move(*d);
}

}  // namespace

CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr at, unsigned value, unsigned flags) {
  return cuda<CUresult(CUstream, CUdeviceptr, unsigned, unsigned)>("cuStreamWriteValue32")(s, at, value, flags);
}
CUresult cuStreamWaitValue32(CUstream s, CUdeviceptr at, unsigned value, unsigned flags) {
  return cuda<CUresult(CUstream, CUdeviceptr, unsigned, unsigned)>("cuStreamWaitValue32")(s, at, value, flags);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream s) {
  return cuda<CUresult(CUdeviceptr, CUdeviceptr, std::size_t, CUstream)>("cuMemcpyAsync")(to, from, bytes, s);
}

TEST_CASE("CUDA: eager rounds and replayed graphs in the order of a stream") {
  const auto d = device();
  const Stream s(0);
  const Stream::Current here(s);
  const auto in_gpu = [&] { return *d->allocate({.where = GpuId{0}, .bytes = 4096, .host_access = false}); };
  const auto in = in_gpu(), out = in_gpu(), seen = *d->allocate({.bytes = 4096});
  const auto go = *d->create_signal(), done = *d->create_signal();
  const auto queue = *d->create_queue({.gpu = GpuId{0}, .engine = EngineId{2}});
  Ring<> ring{queue.memory()};
  StreamOrder order{go->va, {&done->va, 1}};
  REQUIRE(order.prepare(s.calls()));
  const auto packets = [&](auto& p, std::uint32_t) { p.copy({.src = in.va(), .dst = out.va(), .bytes = 4096}); };
  s.copy(in.va(), seen.va(), 4096);
  std::uint32_t rounds = 0;
  const auto eager = [&] {
    s.add_one(in.va());
    REQUIRE(order.enqueue(s.calls(), ring, 16, soon(), packets));
    s.copy(in.va(), out.va(), 4096);
    ++rounds;
  };
  struct Captured {
    StreamGraph rounds;
    GraphExec ready;
  };
  const auto captured = [&](std::uint32_t iterations) {
    const auto g = *order.graph(iterations);
    return Captured{g, s.capture([&] {
                      for (std::uint32_t i = 0; i < iterations; ++i) {
                        s.add_one(in.va());
                        REQUIRE(order.pass(s.calls(), g.value(i)));
                        s.copy(in.va(), out.va(), 4096);
                      }
                      REQUIRE(order.close(s.calls(), g));
                    })};
  };
  const auto publish = [&](const Captured& c) {
    REQUIRE(order.publish(ring, 0, 16, soon(), c.rounds, packets) == Errc::ok);
  };
  const auto one = captured(1), three = captured(3);
  for (int i = 0; i < 5; ++i) eager();
  // Published ahead, and replayed back to back.
  for (int i = 0; i < 4; ++i) publish(one);
  for (int i = 0; i < 4; ++i) s.launch(one.ready);
  rounds += 4;
  for (int i = 0; i < 6; ++i) {
    publish(three);
    s.launch(three.ready);
    s.launch(one.ready);
    publish(one);
    rounds += 4;
    if (i % 2 == 0) eager();
  }
  s.copy(seen.va(), in.va(), 4096);
  s.finish(*d);
  CHECK(seen.as<std::uint32_t>()[0] == rounds);
  CHECK_FALSE(d->fault(queue));
}

TEST_CASE("CUDA: words in pageable memory are refused") {
  const auto d = device();
  const Stream s(0);
  const Stream::Current here(s);
  const auto go = *d->create_signal();
  alignas(8) std::uint64_t pageable = 0;
  const GpuVa word{reinterpret_cast<std::uintptr_t>(&pageable)};
  const auto r = StreamOrder{go->va, {&word, 1}}.prepare(s.calls());
  REQUIRE_FALSE(r);
  CHECK(r.error().status == 1);
  CHECK(r.error().word == word);
}

TEST_CASE("CUDA: collectives in the order of the streams of two GPUs, eager and in graphs") {
  using namespace collectives;
  const auto d = device();
  std::vector<Stream> streams;
  for (int g = 0; g < 2; ++g) streams.emplace_back(g);
  for (const auto c : {Collective::all_gather, Collective::all_to_all}) {
    const Options o{.collective = c,
                    .variant = Variant::pcpy,
                    .prelaunch = Prelaunch::stream,
                    .completion = collectives::Completion::fence,
                    .gpus = 2,
                    .bytes = 10007};
    const auto p = collectives::plan(o);
    REQUIRE(p);
    auto run = Run::prepare(*p, *d);
    if (!run) FAIL(to_string(run.error().front()));
    std::vector<StreamGraph> rounds;
    std::vector<GraphExec> ready;
    for (std::uint32_t g = 0; g < 2; ++g) {
      const Stream::Current here(streams[g]);
      rounds.push_back(*run->graph(g, 3));
      ready.push_back(streams[g].capture([&] {
        for (std::uint32_t i = 0; i < 3; ++i) REQUIRE(run->pass(g, streams[g].calls(), rounds[g], i));
        REQUIRE(run->close(g, streams[g].calls(), rounds[g]));
      }));
    }
    run->fill(3);
    for (int turn = 0; turn < 4; ++turn)
      for (std::uint32_t g = 0; g < 2; ++g) {
        const Stream::Current here(streams[g]);
        if (auto r = run->enqueue(g, streams[g].calls(), soon()); !r) FAIL(to_string(r.error()));
        if (auto r = run->publish(g, rounds[g], soon()); !r) FAIL(to_string(r.error()));
        streams[g].launch(ready[g]);
      }
    for (const auto& s : streams) {
      const Stream::Current here(s);
      s.finish(*d);
    }
    CHECK(run->check().first == "");
  }
}

TEST_CASE("CUDA: an all-gather that two streams carry in two turns, eager and in graphs") {
  using namespace collectives;
  const auto d = device();
  std::vector<Stream> streams;
  for (int g = 0; g < 2; ++g) streams.emplace_back(g);
  const Options o{.variant = Variant::pcpy,
                  .prelaunch = Prelaunch::stream,
                  .completion = collectives::Completion::fence,
                  .gpus = 2,
                  .bytes = 4096,
                  .turns = 2};
  auto run = Run::prepare(*collectives::plan(o), *d);
  if (!run) FAIL(to_string(run.error().front()));
  const auto before = d->issued().calls;
  const auto& at = run->plan().inputs;
  // Each GPU adds 1 to the first word of its part before each round, in both turns alike.
  const auto word = [&](std::uint32_t buffer, std::uint32_t part, std::uint64_t turn) {
    return run->bound().address(at[buffer]) + part * chunk_of(o) + turn * turn_bytes(o);
  };
  std::vector<StreamGraph> rounds;
  std::vector<GraphExec> ready;
  for (std::uint32_t g = 0; g < 2; ++g) {
    const Stream::Current here(streams[g]);
    rounds.push_back(*run->graph(g, 2));
    ready.push_back(streams[g].capture([&] {
      for (std::uint32_t i = 0; i < 2; ++i) {
        streams[g].add_one(word(g, g, i));
        REQUIRE(run->pass(g, streams[g].copying(), rounds[g], i));
      }
      REQUIRE(run->close(g, streams[g].copying(), rounds[g]));
    }));
  }
  std::vector<Memory> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(*d->allocate({.bytes = 4096}));
  for (std::uint32_t g = 0; g < 2; ++g) {
    const Stream::Current here(streams[g]);
    for (std::uint64_t t = 0; t < 2; ++t) streams[g].copy(word(g, g, t), seen[0].va(), 4096 / 2);
    streams[g].finish(*d);
  }
  for (int again = 0; again < 5; ++again)
    for (std::uint32_t g = 0; g < 2; ++g) {
      const Stream::Current here(streams[g]);
      for (std::uint64_t t = 0; t < 2; ++t) {
        CHECK(run->offset_of_turn(g) == t * turn_bytes(o));
        streams[g].add_one(word(g, g, t));
        if (auto r = run->enqueue(g, streams[g].copying(), soon()); !r) FAIL(to_string(r.error()));
      }
      REQUIRE(run->publish(g, rounds[g], soon()));
      streams[g].launch(ready[g]);
    }
  for (std::uint32_t g = 0; g < 2; ++g) {
    const Stream::Current here(streams[g]);
    for (std::uint64_t t = 0; t < 2; ++t) streams[g].copy(seen[2 * g + t].va(), word(g, 1 - g, t), 64);
    streams[g].finish(*d);
  }
  // The peer's part has all of its 10 additions in each turn, and no queue was asked for anything.
  for (const auto& s : seen) CHECK(s.as<std::uint32_t>()[0] == 10);
  CHECK(d->issued().calls == before);
}
