// SPDX-License-Identifier: MIT
// HIP's kernels against models of them that execute work item by work
// item, in the argument layouts of HIP 5.2 and 6.4; and what is refused.
#include "../../lib/emulator/queues/hip_kernels.hpp"

#include "../../lib/emulator/queues/aql.hpp"
#include "code_object_image.hpp"
#include "compute_rig.hpp"

#include <functional>
#include <numeric>

using namespace compute;

namespace {

const std::vector<Argument> kFill{{"bufUChar", 8}, {"bufUShort", 8}, {"bufUInt", 8},
                                  {"bufULong", 8}, {"pattern", 8},   {"patternSize", 4},
                                  {"offset", 8},   {"size", 8},      {"", 8, "hidden_global_offset_x"}};
const std::vector<Argument> kFill2D{{"bufUChar", 8}, {"bufUShort", 8},   {"bufUInt", 8}, {"bufULong", 8},
                                    {"pattern", 8},  {"patternSize", 4}, {"offset", 8},  {"width", 8},
                                    {"height", 8},   {"pitch", 8}};
const std::vector<Argument> kCopy{{"srcI", 8},      {"dstI", 8}, {"srcOrigin", 8},
                                  {"dstOrigin", 8}, {"size", 8}, {"remain", 4}};
const std::vector<Argument> kAligned{{"src", 8},       {"dst", 8},  {"srcOrigin", 8},
                                     {"dstOrigin", 8}, {"size", 8}, {"alignment", 4}};
const std::vector<Argument> kRect{{"src", 8}, {"dst", 8}, {"srcRect", 32}, {"dstRect", 32}, {"size", 32}};
const std::vector<Argument> kFill6{{"buf", 8},       {"pattern", 8}, {"pattern_size", 4},
                                   {"alignment", 4}, {"end_ptr", 8}, {"next_chunk", 4}};
const std::vector<Argument> kCopy6{{"src", 8},          {"dst", 8},     {"size", 8},      {"remainder", 4},
                                   {"aligned_size", 4}, {"end_ptr", 8}, {"next_chunk", 4}};
const std::vector<Argument> kWrite{{"ptrInt", 8}, {"ptrUlong", 8}, {"value", 8}, {"sizeBytes", 8}};
const std::vector<Argument> kWrite6{{"ptrInt", 8}, {"ptrUlong", 8}, {"value", 8}};
const std::vector<Argument> kWait{{"ptrInt", 8}, {"ptrUlong", 8}, {"value", 8}, {"flags", 8}, {"mask", 8}};

using Grid = std::array<std::uint32_t, 3>;
/// What the kernel does to memory in one work item.
using Item = std::function<void(std::byte* memory, std::uint64_t x, std::uint64_t y, std::uint64_t z)>;

/// A kernel that is loaded, and its dispatch.
struct Loaded {
  ComputeRig rig{};
  std::string name;
  std::vector<Argument> layout;
  CodeObject object;
  Block image, arguments, data;
  alignas(64) std::array<std::byte, 64> packet{};

  Loaded(const std::string& kernel, const std::vector<Argument>& args, std::size_t bytes = 1 << 16)
      : name("__amd_rocclr_" + kernel),
        layout(args),
        object(code_object({{"other", {}}, {name, args}})),
        image(rig.space, object.bytes.size()),
        arguments(rig.space, offsets_of(args).back(), Access::read_write, 64),
        data(rig.space, bytes) {
    std::copy(object.bytes.begin(), object.bytes.end(), image.data);
    std::uint32_t seed = 5;
    for (std::size_t i = 0; i < bytes; ++i)
      data.data[i] = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
    set(32, image.va(object.descriptors[1]));
    set(40, arguments.va());
  }
  template <class T> void set(std::size_t at, T v) { std::memcpy(packet.data() + at, &v, sizeof v); }
  /// The numbers of the arguments; a vector has four.
  void call(Grid grid, const std::vector<std::uint64_t>& values) {
    set(12, grid);
    const auto offsets = offsets_of(layout);
    auto v = values.begin();
    for (std::size_t i = 0; i < layout.size() && v != values.end(); ++i)
      for (std::uint32_t at = 0; at < layout[i].bytes; at += 8, ++v)
        std::memcpy(arguments.data + offsets[i] + at, &*v, std::min(layout[i].bytes, 8u));
  }
  HipKernel kernel() {
    const AddressSpace::Reader::Section section(rig.reader);
    return hip_kernel(name, packet.data(), rig.reader);
  }
  std::string refusal() {
    const auto k = kernel();
    CHECK_FALSE(k.effect);
    return k.refusal ? k.refusal : "";
  }
  /// Executes it, and compares all of the data with what its work items do, last item first.
  void same_as(const Item& item) {
    std::vector<std::byte> expected(data.data, data.data + data.bytes);
    Grid grid{};
    std::memcpy(&grid, packet.data() + 12, sizeof grid);
    for (std::uint64_t z = grid[2]; z-- > 0;)
      for (std::uint64_t y = grid[1]; y-- > 0;)
        for (std::uint64_t x = grid[0]; x-- > 0;) item(expected.data(), x, y, z);
    auto k = kernel();
    INFO((k.refusal ? k.refusal : ""));
    REQUIRE(k.effect);
    const AddressSpace::Reader::Section section(rig.reader);
    GpuVa missing{};
    Effect::Step s{};
    while ((s = k.effect->step(rig.reader, &missing)) == Effect::Step::more) {}
    REQUIRE(s == Effect::Step::complete);
    CHECK(std::memcmp(expected.data(), data.data, data.bytes) == 0);
  }
};

}  // namespace

TEST_CASE("fills, by elements of 1, 2, 4 and 8 bytes") {
  for (const std::uint64_t element : {1u, 2u, 4u, 8u})
    for (const std::uint64_t count : {1u, 2u, 3u})
      for (const std::uint32_t grid : {7u, 100u, 512u}) {
        INFO(element << " " << count << " " << grid);
        Loaded k("fillBufferAligned", kFill);
        const std::uint64_t base = 1000, pattern = 64, offset = 3, size = 101;
        std::vector<std::uint64_t> v(4);
        for (std::size_t i = 0; i < 4; ++i)
          if (std::uint64_t{1} << i == element) v[i] = k.data.va(base);
        v.insert(v.end(), {k.data.va(pattern), count, offset, size});
        k.call({grid, 1, 1}, v);
        k.same_as([&](std::byte* m, std::uint64_t x, std::uint64_t, std::uint64_t) {
          if (x >= size) return;
          for (std::uint64_t i = 0; i < count; ++i)
            std::memcpy(m + base + (x * count + offset + i) * element, m + pattern + i * element, element);
        });
      }
}

TEST_CASE("fills of rows") {
  for (const std::uint64_t element : {1u, 2u, 4u, 8u}) {
    INFO(element);
    Loaded k("fillBufferAligned2D", kFill2D);
    const std::uint64_t base = 800, width = 13, height = 5, pitch = 40, offset = 2;
    std::vector<std::uint64_t> v(4);
    for (std::size_t i = 0; i < 4; ++i)
      if (std::uint64_t{1} << i == element) v[i] = k.data.va(base);
    v.insert(v.end(), {k.data.va(16), 1, offset, width, height, pitch});
    k.call({16, 16, 1}, v);
    k.same_as([&](std::byte* m, std::uint64_t x, std::uint64_t y, std::uint64_t) {
      if (x < width && y < height) std::memcpy(m + base + (y * pitch + x + offset) * element, m + 16, element);
    });
    v[5] = 2;
    k.call({16, 16, 1}, v);
    CHECK(k.refusal() == "a pattern whose elements overlap");
  }
}

TEST_CASE("fills in chunks, as HIP 6 has them") {
  for (const std::uint64_t element : {1u, 2u, 4u, 8u, 16u})
    for (const std::uint64_t count : {1u, 3u})
      for (const std::uint32_t grid : {4u, 64u, 2000u}) {
        INFO(element << " " << count << " " << grid);
        Loaded k("fillBufferAligned", kFill6);
        const std::uint64_t base = 4096, bytes = 600 * element + 1, next = grid * count;
        k.call({grid, 1, 1}, {k.data.va(base), k.data.va(64), count, element, k.data.va(base + bytes), next});
        k.same_as([&](std::byte* m, std::uint64_t x, std::uint64_t, std::uint64_t) {
          for (auto e = x * count; e * element < bytes; e += next)
            for (std::uint64_t i = 0; i < count; ++i)
              std::memcpy(m + base + (e + i) * element, m + 64 + i * element, element);
        });
      }
  Loaded k("fillBufferAligned", kFill6);
  k.call({4, 1, 1}, {k.data.va(4096), k.data.va(64), 1, 4, k.data.va(8192), 5});
  CHECK(k.refusal() == "chunks that leave gaps");
}

TEST_CASE("copies, by bytes and by dwords with a remainder") {
  for (const std::uint64_t remain : {0u, 1u, 2u, 3u, 4u, 8u})
    for (const std::uint32_t grid : {5u, 100u, 256u}) {
      INFO(remain << " " << grid);
      Loaded k("copyBuffer", kCopy);
      const std::uint64_t src = 3, dst = 2001, size = 100;
      k.call({grid, 1, 1}, {k.data.va(1), k.data.va(2), src, dst, size, remain});
      k.same_as([&](std::byte* m, std::uint64_t x, std::uint64_t, std::uint64_t) {
        auto *from = m + 1 + src, *to = m + 2 + dst;
        if (x >= size) return;
        if (remain == 8) to[x] = from[x];
        else std::memcpy(to + x * 4, from + x * 4, x < size - 1 ? 4 : remain);
      });
    }
}

TEST_CASE("copies in chunks, as HIP 6 has them") {
  for (const std::uint64_t element : {4u, 16u})
    for (const std::uint64_t remainder : {0u, 1u, 3u})
      for (const std::uint32_t grid : {8u, 4096u}) {
        INFO(element << " " << remainder << " " << grid);
        Loaded k("copyBuffer", kCopy6);
        const std::uint64_t size = 100 * element + remainder, end = size - remainder;
        k.call({grid, 1, 1}, {k.data.va(64), k.data.va(8192), size, remainder, element, k.data.va(8192 + end), grid});
        k.same_as([&](std::byte* m, std::uint64_t x, std::uint64_t, std::uint64_t) {
          for (auto e = x; e * element < end; e += grid)
            std::memcpy(m + 8192 + e * element, m + 64 + e * element, element);
          if (x == 0) std::memcpy(m + 8192 + end, m + 64 + end, remainder);
        });
      }
  Loaded k("copyBuffer", kCopy6);
  k.call({8, 1, 1}, {k.data.va(64), k.data.va(8192), 100, 0, 4, k.data.va(8192 + 100), 9});
  CHECK(k.refusal() == "chunks that leave gaps");
  k.call({64, 1, 1}, {k.data.va(64), k.data.va(8192), 200, 2, 4, k.data.va(8192 + 100), 64});
  CHECK(k.refusal() == "a remainder elsewhere than at the end");
}

TEST_CASE("aligned copies") {
  for (const std::uint64_t alignment : {4u, 16u})
    for (const std::uint32_t grid : {9u, 64u, 256u}) {
      INFO(alignment << " " << grid);
      Loaded k("copyBufferAligned", kAligned);
      const std::uint64_t src = 3, dst = 300, size = 77;
      k.call({grid, 1, 1}, {k.data.va(16), k.data.va(32), src, dst, size, alignment});
      k.same_as([&](std::byte* m, std::uint64_t x, std::uint64_t, std::uint64_t) {
        if (x < size) std::memcpy(m + 32 + (x + dst) * alignment, m + 16 + (x + src) * alignment, alignment);
      });
    }
}

TEST_CASE("copies of boxes") {
  for (const std::uint64_t element : {1u, 4u, 16u}) {
    INFO(element);
    Loaded k(element == 1 ? "copyBufferRect" : "copyBufferRectAligned", kRect);
    const std::array<std::uint64_t, 3> from{20, 90, 2}, to{17, 70, 700}, size{11, 3, 4};
    k.call({16, 4, 3},  // the grid has fewer slices than the box
           {k.data.va(0), k.data.va(128), from[0], from[1], from[2], 0, to[0], to[1], to[2], 0, size[0], size[1],
            size[2], element});
    k.same_as([&](std::byte* m, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
      if (x >= size[0] || y >= size[1] || z >= size[2]) return;
      std::memcpy(m + 128 + (x + to[2] + y * to[0] + z * to[1]) * element,
                  m + (x + from[2] + y * from[0] + z * from[1]) * element, element);
    });
  }
}

TEST_CASE("words of a stream are written, and waited for") {
  for (const auto& layout : {kWrite, kWrite6})
    for (const bool wide : {false, true}) {
      Loaded k("streamOpsWrite", layout);
      k.call({1, 1, 1}, {wide ? 0 : k.data.va(64), wide ? k.data.va(64) : 0, 0x1122334455667788, 8});
      k.same_as([&](std::byte* m, std::uint64_t, std::uint64_t, std::uint64_t) {
        const std::uint64_t v = 0x1122334455667788;
        std::memcpy(m + 64, &v, wide ? 8 : 4);
      });
    }
  struct Case {
    std::uint64_t flags, value, mask, waits, passes;
  };
  for (const auto& t : {Case{0, 5, 0xff, 0x104, 0x105}, Case{0, 5, 0xff, 0x100, 0x1f0}, Case{1, 5, 0xf, 6, 0x15},
                        Case{2, 6, 4, 2, 4}, Case{3, 1, 3, 2, 1}})
    for (const bool wide : {false, true}) {
      INFO(t.flags << " " << wide);
      Loaded k("streamOpsWait", kWait);
      k.call({1, 1, 1}, {wide ? 0 : k.data.va(64), wide ? k.data.va(64) : 0, t.value, t.flags, t.mask});
      k.data.at<std::uint64_t>(64) = t.waits;
      auto kernel = k.kernel();
      REQUIRE(kernel.effect);
      const AddressSpace::Reader::Section section(k.rig.reader);
      GpuVa missing{};
      CHECK(kernel.effect->step(k.rig.reader, &missing) == Effect::Step::waits);
      k.data.at<std::uint64_t>(64) = t.passes;
      CHECK(kernel.effect->step(k.rig.reader, &missing) == Effect::Step::complete);
    }
  Loaded k("streamOpsWait", kWait);
  k.call({1, 1, 1}, {k.data.va(64), 0, 1, 4, 1});
  CHECK(k.refusal() == "a comparison that is not known");
}

TEST_CASE("what is not known is refused by name") {
  const std::vector<std::uint64_t> values{0, 0, 0, 0, 0, 0, 0, 0};
  auto renamed = kCopy;
  renamed[2].name = "source";
  CHECK(Loaded("copyBuffer", renamed).refusal() == "its arguments have a layout that is not known");
  auto resized = kCopy;
  resized[4].bytes = 4;
  CHECK(Loaded("copyBuffer", resized).refusal() == "its arguments have a layout that is not known");
  auto shorter = kCopy;
  shorter.pop_back();
  CHECK(Loaded("copyBuffer", shorter).refusal() == "its arguments have a layout that is not known");
  auto longer = kCopy;
  longer.push_back({"more", 8});
  CHECK(Loaded("copyBuffer", longer).refusal() == "its arguments have a layout that is not known");
  auto vast = kCopy;
  for (int i = 0; i < 40; ++i) vast.push_back({"", 32, "hidden_none"});
  CHECK(Loaded("copyBuffer", vast).refusal() == "it has more arguments than any known version");

  Loaded fill("fillBufferAligned", kFill);
  fill.call({1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(fill.refusal() == "its grid does not begin at zero");
  fill.call({1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(fill.refusal() == "an empty pattern");
  fill.call({1, 1, 1}, {0, 0, 0, 0, 0, 257, 0, 0, 0});
  CHECK(fill.refusal() == "a pattern that is too long");
  fill.call({1, 1, 1}, {0, 0, 0, 0, 8, 1, 0, 0, 0});
  CHECK(fill.refusal() == "a pattern that is not mapped for this GPU");
  fill.set(40, std::uint64_t{64});
  CHECK(fill.refusal() == "its arguments are not mapped for this GPU");

  Loaded other("initHeap", kCopy);
  CHECK(other.refusal().empty());
  CHECK_FALSE(other.kernel().effect);
  Loaded unnamed("copyBuffer", kCopy);
  unnamed.name = "__amd_rocclr_copyBufferAligned";
  CHECK(unnamed.refusal() == "its code object does not describe its arguments");
}

TEST_CASE("effects: a step is bounded, and an address that is not mapped is found") {
  ComputeRig rig;
  Block data(rig.space, 16 << 20);
  const AddressSpace::Reader::Section section(rig.reader);
  GpuVa missing{};
  const auto steps = [&](const Rows& r) {
    Effect e(r);
    unsigned n = 1;
    while (e.step(rig.reader, &missing) == Effect::Step::more) ++n;
    return n;
  };
  CHECK(steps({.src = GpuVa{data.va()}, .dst = GpuVa{data.va(8 << 20)}, .row_bytes = 6 << 20}) == 2);
  CHECK(steps({.src = GpuVa{data.va()},
               .dst = GpuVa{data.va(8 << 20)},
               .row_bytes = 1,
               .rows = 20'000,
               .src_row = 3,
               .dst_row = 2}) == 3);
  CHECK(missing.value == 0);
  Effect e(Rows{.src = GpuVa{data.va()}, .dst = GpuVa{data.va((16 << 20) - 8)}, .row_bytes = 16});
  CHECK(e.step(rig.reader, &missing) == Effect::Step::unmapped);
  CHECK(missing.value == data.va(16 << 20));
  // A pattern goes on where the step before ended.
  Rows fill{.dst = GpuVa{data.va()}, .row_bytes = 5 << 20, .pattern_bytes = 3};
  for (std::size_t i = 0; i < 3; ++i) fill.pattern[i] = static_cast<std::byte>(i + 1);
  CHECK(steps(fill) == 2);
  bool same = true;
  for (std::size_t i = 0; i < fill.row_bytes; ++i) same = same && data.data[i] == fill.pattern[i % 3];
  CHECK(same);
  // Rows of no bytes, however many.
  CHECK(steps({.dst = GpuVa{8}, .rows = ~std::uint64_t{0}, .slices = ~std::uint64_t{0}}) == 1);
}

TEST_CASE("a queue executes them, and stops with an error at those that are unknown") {
  Loaded k("copyBufferAligned", kAligned, 32 << 20);
  k.call({1 << 20, 1, 1}, {k.data.va(), k.data.va(16 << 20), 0, 0, 1 << 20, 16});
  AqlQueue q(k.rig.config());
  k.set(0, std::uint16_t{2});
  std::memcpy(k.rig.ring.data, k.packet.data(), 64);
  std::memcpy(k.rig.ring.data + 64, k.packet.data(), 64);
  k.rig.ring.at<std::uint64_t>(64 + 32) = k.image.va(k.object.descriptors[0]);  // "other"
  k.rig.publish(q, 2);
  // Its arguments may change once it has begun.
  REQUIRE(q.step() == Progress::progressed);
  std::memset(k.arguments.data, 0, k.arguments.bytes);
  int steps = 1;
  while (k.rig.memory.at<std::uint64_t>(0) == 0 && steps < 100) {
    REQUIRE(q.step() == Progress::progressed);
    ++steps;
  }
  CHECK(steps == 4);
  CHECK(std::memcmp(k.data.data, k.data.data + (16 << 20), 16 << 20) == 0);
  const std::size_t signal = 1024;
  k.rig.memory.at<std::uint64_t>(64) = k.rig.memory.va(signal);  // of the queue
  CHECK(q.step() == Progress::stopped);
  CHECK(k.rig.memory.at<std::int64_t>(signal + 8) == 8);
  CHECK(k.rig.faults.empty());
}
