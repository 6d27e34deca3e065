// SPDX-License-Identifier: MIT
// Packets and collectives in the order of HIP's streams. The host enqueues everything before it waits once.
#define __HIP_PLATFORM_AMD__
#include "collectives/collectives.hpp"
#include "examples/streams/hip.hpp"
#include "sdma/device/rocr.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <deque>

using namespace sdma;

#define GOOD(call) REQUIRE((call) == hipSuccess)

namespace {

constexpr std::size_t kBytes = 64 << 10, kRounds = 24;

Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }

std::unique_ptr<RocrDevice> over_rocr() {
  const char* library = std::getenv("SDMA_TEST_LIBHSA");
  auto d = RocrDevice::open({.libhsa = library ? library : ""});
  if (!d) FAIL(to_string(d.error()));
  return std::move(*d);
}

/// HIP's signal memory, lent to engines.
class Words {
 public:
  explicit Words(RocrDevice& d) : device_(d) {}
  ~Words() {
    memory_.clear();
    for (auto* w : all_) (void)hipFree(w);
  }
  Signal next() {
    std::uint64_t* w = nullptr;
    GOOD(hipExtMallocWithFlags(reinterpret_cast<void**>(&w), 8, hipMallocSignalMemory));
    __atomic_store_n(w, 0, __ATOMIC_RELEASE);
    all_.push_back(w);
    auto m = device_.adopt(w, 8);
    if (!m) FAIL(to_string(m.error()));
    const auto va = memory_.emplace_back(std::move(*m)).va();
    // Streams and engines have one address for it.
    REQUIRE(va.value == reinterpret_cast<std::uintptr_t>(w));
    return {.word = w, .va = va};
  }

 private:
  RocrDevice& device_;
  std::vector<std::uint64_t*> all_{};
  std::deque<Memory> memory_{};
};

template <class T> T* pinned(std::size_t n) {
  T* p = nullptr;
  GOOD(hipHostMalloc(reinterpret_cast<void**>(&p), n * sizeof(T), 0));
  return p;
}

}  // namespace

TEST_CASE("HIP: kernels and copies of engines in the order of a stream", "[stream]") {
  GOOD(hipSetDevice(0));
  auto d = over_rocr();
  Words words(*d);
  const auto go = words.next(), done = words.next();
  StreamOrder order{go.va, {&done.va, 1}};
  hipStream_t s{};
  GOOD(hipStreamCreate(&s));
  REQUIRE(order.prepare(hip_stream(s)));
  GOOD(hipStreamSynchronize(s));

  void *in = nullptr, *out = nullptr;
  GOOD(hipMalloc(&in, kBytes));
  GOOD(hipMalloc(&out, kBytes));
  auto* const seen = pinned<std::uint8_t>(kRounds * kBytes);
  {
    const auto from = *d->adopt(in, kBytes), to = *d->adopt(out, kBytes);
    // Not an engine of HIP's copies: a queue that waits for the stream may keep it from them (X2).
    auto q = d->create_queue({.gpu = GpuId{0}, .engine = EngineId{2}});
    if (!q) FAIL(to_string(q.error()));
    Ring<> ring{q->memory()};
    for (std::size_t i = 0; i < kRounds; ++i) {
      GOOD(hipMemsetAsync(in, static_cast<int>(i + 1), kBytes, s));
      const auto r = order.enqueue(hip_stream(s), ring, 16, soon(), [&](auto& packets, std::uint32_t) {
        packets.copy({.src = from.va(), .dst = to.va(), .bytes = kBytes});
      });
      REQUIRE(r);
      GOOD(hipMemcpyAsync(seen + i * kBytes, out, kBytes, hipMemcpyDeviceToHost, s));
    }
    GOOD(hipStreamSynchronize(s));
    CHECK_FALSE(d->fault(*q));
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kRounds * kBytes; ++i) wrong += seen[i] != i / kBytes + 1;
  CHECK(wrong == 0);
  GOOD(hipHostFree(seen));
  GOOD(hipFree(in));
  GOOD(hipFree(out));
  GOOD(hipStreamDestroy(s));
}

TEST_CASE("HIP: words that are not signal memory are refused", "[stream]") {
  auto d = over_rocr();
  Words words(*d);
  const auto go = words.next(), done = words.next();
  hipStream_t s{};
  GOOD(hipStreamCreate(&s));
  auto* const host = pinned<std::uint64_t>(1);
  void* memory = nullptr;
  GOOD(hipMalloc(&memory, 4096));
  std::uint64_t pageable = 0;
  for (const void* other :
       {static_cast<const void*>(host), static_cast<const void*>(memory), static_cast<const void*>(&pageable)}) {
    const GpuVa refused[] = {done.va, GpuVa{reinterpret_cast<std::uintptr_t>(other)}};
    const auto r = StreamOrder{go.va, refused}.prepare(hip_stream(s));
    REQUIRE_FALSE(r);
    CHECK(r.error().word == refused[1]);
  }
  CHECK(StreamOrder{go.va, {&done.va, 1}}.prepare(hip_stream(s)));
  GOOD(hipStreamSynchronize(s));
  GOOD(hipHostFree(host));
  GOOD(hipFree(memory));
  GOOD(hipStreamDestroy(s));
}

TEST_CASE("HIP: what cannot be captured is refused during a capture", "[stream]") {
  auto d = over_rocr();
  Words words(*d);
  const auto go = words.next(), done = words.next();
  const StreamOrder order{go.va, {&done.va, 1}};
  hipStream_t s{};
  GOOD(hipStreamCreate(&s));
  hipGraph_t graph{};
  GOOD(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
  const auto begin = order.begin(hip_stream(s), 1), end = order.end(hip_stream(s), 1);
  REQUIRE_FALSE(begin);
  REQUIRE_FALSE(end);
  CHECK(begin.error().status == hipErrorStreamCaptureUnsupported);
  CHECK(end.error().status == hipErrorStreamCaptureUnsupported);
  // HIP itself says that all is well, and writes at once. If this fails, this HIP captures: let hip.hpp and the page
  // say so.
  CHECK(hipStreamWriteValue32(s, go.word, 7, 0) == hipSuccess);
  GOOD(hipStreamEndCapture(s, &graph));
  std::size_t nodes = 0;
  GOOD(hipGraphGetNodes(graph, nullptr, &nodes));
  GOOD(hipStreamSynchronize(s));
  CHECK(nodes == 0);
  CHECK(go.load() == 7);
  GOOD(hipGraphDestroy(graph));
  GOOD(hipStreamDestroy(s));
}

TEST_CASE("HIP: collectives in the order of the streams of their GPUs", "[stream]") {
  using namespace collectives;
  auto d = over_rocr();
  const auto n = static_cast<std::uint32_t>(d->topology().gpus.size());
  std::vector<hipStream_t> streams(n);
  for (std::uint32_t g = 0; g < n; ++g) {
    GOOD(hipSetDevice(static_cast<int>(g)));
    GOOD(hipStreamCreate(&streams[g]));
  }
  for (const auto c : {Collective::all_gather, Collective::all_to_all}) {
    const Options options{.collective = c,
                          .variant = Variant::b2b,
                          .prelaunch = Prelaunch::stream,
                          .completion = collectives::Completion::fence,
                          .gpus = n,
                          .bytes = 10007};
    const auto p = collectives::plan(options);
    REQUIRE(p);
    Words words(*d);
    std::vector<Signal> all;
    while (all.size() < Run::stream_words(*p)) all.push_back(words.next());
    auto run = Run::prepare(*p, *d, {}, all);
    if (!run) FAIL(to_string(run.error().front()));
    run->fill(3);
    for (int round = 0; round < 4; ++round)
      for (std::uint32_t g = 0; g < n; ++g) {
        GOOD(hipSetDevice(static_cast<int>(g)));
        if (auto r = run->enqueue(g, hip_stream(streams[g]), soon()); !r) FAIL(to_string(r.error()));
      }
    for (const auto s : streams) GOOD(hipStreamSynchronize(s));
    CHECK(run->check().first == "");
    CHECK(all[0].load() == 4);
  }
  for (const auto s : streams) GOOD(hipStreamDestroy(s));
}
