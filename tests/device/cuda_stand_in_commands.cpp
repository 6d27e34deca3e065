// SPDX-License-Identifier: MIT
// The stand-in for libcuda: copies, batches, memsets, kernels, injected failures and adversarial order.
#include "cuda_stand_in.hpp"

#include <dlfcn.h>

#include <set>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;
using cuda::Pointer;

namespace {

constexpr cuda::Status kNotFound = 500, kMisaligned = 716, kLaunchFailed = 719;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

/// A module that declares these kernels.
std::string module_text(std::initializer_list<const char*> kernels) {
  std::string text = ".version 7.0\n.target sm_90\n";
  for (const auto* k : kernels) text.append(".visible .entry ").append(k).append("(.param .u64 a)\n");
  return text;
}

cuda::Status launch(const StandIn& cuda, cuda::Stream s, const char* kernel, Pointer at, std::uint64_t value = 0,
                    std::uint64_t compare = 0) {
  cuda::Module m{};
  cuda::Function f{};
  REQUIRE(cuda->load_module(&m, module_text({kernel}).c_str()) == cuda::kSuccess);
  REQUIRE(cuda->function(&f, m, kernel) == cuda::kSuccess);
  void* arguments[] = {&at, &value, &compare};
  return cuda->launch(f, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr);
}

/// Copies GPU memory to a new host buffer.
std::vector<unsigned char> bytes_of(const Gpu& gpu, Pointer at, std::size_t n) {
  auto* host = gpu.host<unsigned char>(n);
  const auto s = gpu.stream();
  REQUIRE(gpu.driver->copy(address(host), at, n, s) == cuda::kSuccess);
  REQUIRE(gpu.finish(s) == cuda::kSuccess);
  return {host, host + n};
}

}  // namespace

TEST_CASE("a box is copied row by row") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto memory = gpu.memory(Gpu::kPage);
  auto* host = gpu.host<unsigned char>(64);
  for (unsigned char i = 0; i < 64; ++i) host[i] = i;
  const auto s = gpu.stream();
  REQUIRE(cuda->set_8(memory, 0xee, 64, s) == cuda::kSuccess);
  cuda::Copy2D c{.src_x = 1,
                 .src_y = 2,
                 .src = address(host),
                 .src_pitch = 8,
                 .dst_x = 2,
                 .dst_y = 1,
                 .dst = memory,
                 .dst_pitch = 16,
                 .width = 3,
                 .height = 2};
  CHECK(cuda->copy_2d(&c, s) == cuda::kSuccess);
  REQUIRE(gpu.finish(s) == cuda::kSuccess);
  const auto got = bytes_of(gpu, memory, 64);
  for (std::size_t i = 0; i < 64; ++i) {
    const auto row = i / 16, x = i % 16;
    const bool inside = row >= 1 && row <= 2 && x >= 2 && x <= 4;
    CHECK(got[i] == (inside ? (row + 1) * 8 + x - 1 : 0xee));
  }
  c.src_pitch = 2;
  CHECK(cuda->copy_2d(&c, s) == cuda::kInvalidValue);
  c.src_pitch = 8;
  c.dst_pitch = 2;
  CHECK(cuda->copy_2d(&c, s) == cuda::kInvalidValue);
  c.dst_pitch = 16;
  c.src_type = 1;
  CHECK(cuda->copy_2d(&c, s) == cuda::kInvalidValue);
}

TEST_CASE("memsets repeat 1, 2 or 4 bytes, and a row's byte") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto memory = gpu.memory(Gpu::kPage);
  const auto s = gpu.stream();
  REQUIRE(cuda->set_8(memory, 1, 64, s) == cuda::kSuccess);
  REQUIRE(cuda->set_8(memory + 1, 2, 3, s) == cuda::kSuccess);
  REQUIRE(cuda->set_16(memory + 6, 0x0403, 3, s) == cuda::kSuccess);
  REQUIRE(cuda->set_32(memory + 16, 0x08070605, 2, s) == cuda::kSuccess);
  REQUIRE(cuda->set_2d(memory + 32, 8, 9, 3, 2, s) == cuda::kSuccess);
  REQUIRE(gpu.finish(s) == cuda::kSuccess);
  const std::vector<unsigned char> want{1, 2, 2, 2, 1, 1, 3, 4, 3, 4, 3, 4, 1, 1, 1, 1, 5, 6, 7, 8, 5, 6,
                                        7, 8, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 1, 1, 1, 1, 1, 9, 9, 9, 1};
  CHECK(bytes_of(gpu, memory, want.size()) == want);
  REQUIRE(cuda->set_32(memory, 0x04030201, 1000, s) == cuda::kSuccess);
  REQUIRE(cuda->set_16(memory + 4000, 0x0201, 1001, s) == cuda::kSuccess);
  REQUIRE(gpu.finish(s) == cuda::kSuccess);
  const auto got = bytes_of(gpu, memory, 6002);
  for (std::size_t i = 0; i < 4000; ++i) REQUIRE(got[i] == i % 4 + 1);
  for (std::size_t i = 4000; i < 6002; ++i) REQUIRE(got[i] == i % 2 + 1);
  CHECK(cuda->set_16(memory + 1, 1, 1, s) == cuda::kInvalidValue);
  CHECK(cuda->set_32(memory + 2, 1, 1, s) == cuda::kInvalidValue);
  CHECK(cuda->set_2d(memory, 2, 1, 3, 1, s) == cuda::kInvalidValue);
}

TEST_CASE("a batch has the form of the version that is asked for") {
  const auto forms = [](const char* version) {
    const StandIn cuda({{"SDMA_STAND_IN_VERSION", version}});
    return std::pair(cuda->copy_batch_12_8 != nullptr, cuda->copy_batch_13_0 != nullptr);
  };
  CHECK(forms("13000") == std::pair(false, true));
  CHECK(forms("12080") == std::pair(true, false));
  CHECK(forms("12070") == std::pair(false, false));

  // A newer driver has the older form too.
  const StandIn cuda;
  const auto find = reinterpret_cast<cuda::Status (*)(const char*, void**, int, std::uint64_t, int*)>(
      ::dlsym(cuda->library.from(), "cuGetProcAddress_v2"));
  REQUIRE(find);
  std::set<void*> found;
  for (const int version : {12000, 12080, 12090, 13000}) {
    void* at = nullptr;
    CHECK(find("cuMemcpyBatchAsync", &at, version, 0, nullptr) == cuda::kSuccess);
    CHECK((at == nullptr) == (version == 12000));
    found.insert(at);
  }
  CHECK(found.size() == 3);
  void* at = nullptr;
  CHECK(find("cuMemcpyBatchAsync", &at, 14000, 0, nullptr) == cuda::kInvalidValue);
  CHECK(find("cuNoSuchCall", &at, 12000, 0, nullptr) == cuda::kSuccess);
  CHECK(!at);
}

TEST_CASE("a batch copies everything after what is before it, and refuses wrong arguments") {
  for (const char* version : {"12080", "13000"}) {
    const StandIn cuda({{"SDMA_STAND_IN_VERSION", version}});
    const Gpu gpu(cuda);
    const auto memory = gpu.memory(Gpu::kPage);
    auto* host = gpu.host<std::uint32_t>(16);
    const auto s = gpu.stream();
    std::size_t failed = 0;
    const auto batch = [&](std::vector<Pointer> dst, std::vector<Pointer> src, std::vector<std::size_t> bytes,
                           std::vector<std::size_t> from) {
      const std::vector<cuda::BatchAttributes> a(from.size() + 1);
      return cuda->copy_batch_13_0 ? cuda->copy_batch_13_0(dst.data(), src.data(), bytes.data(), dst.size(), a.data(),
                                                           from.data(), from.size(), s)
                                   : cuda->copy_batch_12_8(dst.data(), src.data(), bytes.data(), dst.size(), a.data(),
                                                           from.data(), from.size(), &failed, s);
    };
    const Pointer to = address(host), from = memory;
    REQUIRE(cuda->set_32(memory, 5, 8, s) == cuda::kSuccess);
    CHECK(batch({to, to + 8, to + 16}, {from, from, from}, {4, 8, 12}, {0, 2}) == cuda::kSuccess);
    REQUIRE(cuda->set_32(to, 6, 1, s) == cuda::kSuccess);
    REQUIRE(gpu.finish(s) == cuda::kSuccess);
    const std::vector<std::uint32_t> got(host, host + 8);
    CHECK(got == std::vector<std::uint32_t>{6, 0, 5, 5, 5, 5, 5, 0});

    CHECK(batch({}, {}, {}, {0}) == cuda::kInvalidValue);
    CHECK(batch({to}, {from}, {4}, {}) == cuda::kInvalidValue);
    CHECK(batch({to, to}, {from, from}, {4, 4}, {1}) == cuda::kInvalidValue);
    CHECK(batch({to, to}, {from, from}, {4, 4}, {0, 0}) == cuda::kInvalidValue);
    CHECK(batch({to, to}, {from, from}, {4, 4}, {0, 2}) == cuda::kInvalidValue);
    CHECK(batch({to}, {from}, {4}, {0, 1}) == cuda::kInvalidValue);
    CHECK(failed == (cuda->copy_batch_13_0 ? 0 : SIZE_MAX));
  }
}

TEST_CASE("kernels do what PTX's atomic operations do") {
  struct Row {
    const char* name;
    std::uint64_t old, value, compare, want;
  };
  constexpr std::uint64_t kMinus1 = kAll, kMinus1_32 = 0xffff'ffff, kHigh = 0xabcd'0000'0000;
  // The upper half of a 64-bit word is not touched by a 32-bit kernel, whatever the upper halves of its arguments.
  const Row rows[] = {
      {"add_32", kHigh | kMinus1_32, kHigh | 2, 0, kHigh | 1},
      {"add_64", kMinus1_32, 2, 0, 0x1'0000'0001},
      {"swap_32", kHigh | 1, 2, 0, kHigh | 2},
      {"swap_64", kHigh | 1, 2, 0, 2},
      {"and_32", kHigh | 6, 3, 0, kHigh | 2},
      {"and_64", kHigh | 6, 3, 0, 2},
      {"or_32", kHigh | 6, 3, 0, kHigh | 7},
      {"or_64", 6, kHigh | 3, 0, kHigh | 7},
      {"xor_32", kHigh | 6, 3, 0, kHigh | 5},
      {"xor_64", 6, kHigh | 3, 0, kHigh | 5},
      {"smin_32", kHigh | 1, kMinus1_32, 0, kHigh | kMinus1_32},
      {"smin_64", 1, kMinus1, 0, kMinus1},
      {"smax_32", kHigh | 1, kMinus1_32, 0, kHigh | 1},
      {"smax_64", 1, kMinus1, 0, 1},
      {"umin_32", kHigh | 1, kMinus1_32, 0, kHigh | 1},
      {"umin_64", 1, kMinus1, 0, 1},
      {"umax_32", kHigh | 1, kMinus1_32, 0, kHigh | kMinus1_32},
      {"umax_64", 1, kMinus1, 0, kMinus1},
      {"cmpswap_32", kHigh | 4, 5, kHigh | 4, kHigh | 5},
      {"cmpswap_32", kHigh | 4, 5, 3, kHigh | 4},
      {"cmpswap_64", kHigh | 4, 5, kHigh | 4, 5},
      {"cmpswap_64", kHigh | 4, 5, 4, kHigh | 4},
      {"inc_32", kHigh | 3, 4, 0, kHigh | 4},
      {"inc_32", kHigh | 4, 4, 0, kHigh | 0},
      {"inc_32", kHigh | 5, 4, 0, kHigh | 0},
      {"dec_32", kHigh | 3, 4, 0, kHigh | 2},
      {"dec_32", kHigh | 0, 4, 0, kHigh | 4},
      {"dec_32", kHigh | 5, 4, 0, kHigh | 4},
  };
  const StandIn cuda;
  const Gpu gpu(cuda);
  auto* word = gpu.host<std::uint64_t>(1);
  const auto s = gpu.stream();
  for (const auto& r : rows) {
    CAPTURE(r.name, r.old, r.value, r.compare);
    *word = r.old;
    REQUIRE(launch(cuda, s, r.name, address(word), r.value, r.compare) == cuda::kSuccess);
    REQUIRE(gpu.finish(s) == cuda::kSuccess);
    CHECK(*word == r.want);
  }
}

TEST_CASE("a kernel must be declared and known, and its arguments are taken at the call") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  cuda::Module m{};
  cuda::Function f{};
  REQUIRE(cuda->load_module(&m, module_text({"add_64", "secret"}).c_str()) == cuda::kSuccess);
  CHECK(cuda->function(&f, m, "add_32") == kNotFound);
  CHECK(cuda->function(&f, m, "secret") == kNotFound);
  REQUIRE(cuda->function(&f, m, "add_64") == cuda::kSuccess);
  auto* words = gpu.host<std::uint64_t>(2);
  auto* gate = reinterpret_cast<std::uint32_t*>(&words[1]);
  const auto s = gpu.stream();
  REQUIRE(cuda->wait_value(s, address(gate), 1, cuda::kWaitEqual) == cuda::kSuccess);
  Pointer at = address(words);
  std::uint64_t value = 3, compare = 0;
  void* arguments[] = {&at, &value, &compare};
  CHECK(cuda->launch(f, 2, 1, 1, 1, 1, 1, 0, s, arguments, nullptr) == cuda::kInvalidValue);
  REQUIRE(cuda->launch(f, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr) == cuda::kSuccess);
  at = 0;
  value = 99;
  store(gate, 1);
  REQUIRE(gpu.finish(s) == cuda::kSuccess);
  CHECK(words[0] == 3);
  at = address(words) + 4;
  REQUIRE(cuda->launch(f, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr) == cuda::kSuccess);
  CHECK(gpu.finish(s) == kMisaligned);
}

TEST_CASE("kernels of several streams add to one word, and a timestamp is the host's clock") {
  constexpr int kStreams = 4, kAdds = 200;
  const StandIn cuda;
  const Gpu gpu(cuda);
  cuda::Module m{};
  cuda::Function f{};
  REQUIRE(cuda->load_module(&m, module_text({"add_64"}).c_str()) == cuda::kSuccess);
  REQUIRE(cuda->function(&f, m, "add_64") == cuda::kSuccess);
  Pointer at = gpu.memory(Gpu::kPage);
  std::uint64_t one = 1, compare = 0;
  void* arguments[] = {&at, &one, &compare};
  std::vector<cuda::Stream> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(gpu.stream());
  for (int i = 0; i < kAdds; ++i)
    for (const auto s : streams) REQUIRE(cuda->launch(f, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr) == cuda::kSuccess);
  for (const auto s : streams) REQUIRE(gpu.finish(s) == cuda::kSuccess);
  auto* words = gpu.host<std::uint64_t>(2);
  REQUIRE(cuda->copy(address(words), at, 8, streams[0]) == cuda::kSuccess);
  const auto now = [] {
    const auto t = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t).count()) / 10;
  };
  const auto before = now();
  REQUIRE(launch(cuda, streams[0], "timestamp", address(&words[1])) == cuda::kSuccess);
  REQUIRE(gpu.finish(streams[0]) == cuda::kSuccess);
  CHECK(words[0] == kStreams * kAdds);
  CHECK(words[1] >= before);
  CHECK(words[1] <= now());
}

TEST_CASE("the named call fails, at once or later, and no other") {
  const StandIn cuda({{"SDMA_STAND_IN_FAIL", "cuMemcpyAsync:3:719,cuStreamQuery:2:999,cuStreamWriteValue32:2:+719"}});
  const Gpu gpu(cuda);
  const auto memory = gpu.memory(Gpu::kPage);
  auto* words = gpu.host<std::uint32_t>(4);
  const auto s = gpu.stream();
  CHECK(cuda->copy(memory, address(words), 4, s) == cuda::kSuccess);
  CHECK(cuda->copy(memory, address(words), 4, s) == cuda::kSuccess);
  CHECK(cuda->copy(memory, address(words), 4, s) == kLaunchFailed);
  CHECK(cuda->copy(memory, address(words), 4, s) == cuda::kSuccess);
  (void)cuda->stream_query(s);
  CHECK(cuda->stream_query(s) == 999);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(cuda->write_value(s, address(&words[1]), 1, 0) == cuda::kSuccess);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(cuda->write_value(s, address(&words[2]), 1, 0) == cuda::kSuccess);
  CHECK(gpu.finish(s) == kLaunchFailed);
  CHECK(words[1] == 1);
  CHECK(words[2] == 0);
}

TEST_CASE("with a seed, batches and copies have no order of their own, and streams pause") {
  // Copies that depend on each other, and one that overlaps itself, show in which order the bytes moved.
  struct Seen {
    std::set<std::vector<std::uint32_t>> batches{};
    std::set<std::vector<unsigned char>> overlaps{};
  };
  const auto run = [](const StandIn& cuda, Seen& seen) {
    const Gpu gpu(cuda);
    const auto memory = gpu.memory(Gpu::kPage);
    auto* host = gpu.host<std::uint32_t>(4);
    auto* bytes = gpu.host<unsigned char>(1024);
    const auto s = gpu.stream();
    for (std::uint32_t i = 0; i < 4; ++i) host[i] = i;
    for (std::size_t i = 0; i < 1024; ++i) bytes[i] = static_cast<unsigned char>(i / 64);
    REQUIRE(cuda->copy(memory, address(host), 16, s) == cuda::kSuccess);
    const Pointer dst[] = {memory + 4, memory + 8, memory + 12}, src[] = {memory, memory + 4, memory + 8};
    const std::size_t sizes[] = {4, 4, 4}, from = 0;
    const cuda::BatchAttributes a;
    REQUIRE(cuda->copy_batch_13_0(dst, src, sizes, 3, &a, &from, 1, s) == cuda::kSuccess);
    REQUIRE(cuda->copy(memory + 4096, address(bytes), 1024, s) == cuda::kSuccess);
    REQUIRE(cuda->copy(memory + 4096 + 256, memory + 4096, 768, s) == cuda::kSuccess);
    REQUIRE(cuda->set_32(memory + 8192, 0x04030201, 1000, s) == cuda::kSuccess);
    REQUIRE(gpu.finish(s) == cuda::kSuccess);
    const auto repeated = bytes_of(gpu, memory + 8192, 4000);
    for (std::size_t i = 0; i < 4000; ++i) REQUIRE(repeated[i] == i % 4 + 1);
    const auto batch = bytes_of(gpu, memory, 16);
    seen.batches.insert({batch[0], batch[4], batch[8], batch[12]});
    seen.overlaps.insert(bytes_of(gpu, memory + 4096, 1024));
  };
  Seen prompt, adversarial;
  for (int i = 0; i < 3; ++i) run(StandIn(), prompt);
  CHECK(prompt.batches == std::set<std::vector<std::uint32_t>>{{0, 0, 0, 0}});
  CHECK(prompt.overlaps.size() == 1);
  for (int seed = 1; seed <= 12; ++seed) run(StandIn({{"SDMA_STAND_IN_SEED", std::to_string(seed)}}), adversarial);
  CHECK(adversarial.batches.size() >= 3);
  CHECK(adversarial.overlaps.size() >= 3);

  const StandIn cuda({{"SDMA_STAND_IN_SEED", "3"}});
  const Gpu gpu(cuda);
  auto* word = gpu.host<std::uint32_t>(1);
  const auto s = gpu.stream();
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 1; i <= 400; ++i) REQUIRE(cuda->write_value(s, address(word), i, 0) == cuda::kSuccess);
  REQUIRE(gpu.finish(s) == cuda::kSuccess);
  CHECK(load(word) == 400);
  CHECK(std::chrono::steady_clock::now() - begin > 20ms);
}
