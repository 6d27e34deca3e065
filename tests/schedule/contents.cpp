// SPDX-License-Identifier: MIT
// What memory holds before anything runs: fill() stores it, FirstContents knows it. Both have to agree.
#include "../../lib/schedule/contents.hpp"

#include "../../lib/schedule/symbols.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <cstring>
#include <map>

using namespace sdma;

namespace {

Schedule parsed(const std::string& text) {
  auto s = parse_schedule("sdma 1\ngpus 1\n" + text, "contents.sdma");
  REQUIRE(s);
  return std::move(*s);
}

/// The word at an address after fill(), and after every signal has been set, as run does it.
class Memory {
 public:
  Memory(const Schedule& s, std::uint64_t seed) {
    for (std::size_t i = 0; i < s.buffers.size(); ++i)
      if (!s.buffers[i].at) bytes_[link_buffer(i).value].resize(s.buffers[i].bytes);
    for (std::size_t i = 0; i < s.signals.size(); ++i)
      if (!s.signals[i].at) bytes_[link_signal(i).value].resize(8);
    detail::fill(s, seed, [&](std::size_t i) {
      return std::span(at(detail::resolve(s, link_buffer(i)).value), s.buffers[i].bytes);
    });
    for (std::size_t i = 0; i < s.signals.size(); ++i)
      std::memcpy(at(detail::resolve(s, link_signal(i)).value), &s.signals[i].value, s.signals[i].bits / 8);
  }
  std::uint64_t word(GpuVa va, std::size_t bytes) {
    std::uint64_t v = 0;
    std::memcpy(&v, at(va.value), bytes);
    return v;
  }

 private:
  std::byte* at(std::uint64_t va) {
    auto b = --bytes_.upper_bound(va);
    return b->second.data() + (va - b->first);
  }
  std::map<std::uint64_t, std::vector<std::byte>> bytes_;
};

}  // namespace

TEST_CASE("every word that is known has the value that a run starts with, whatever the seed") {
  const auto s = parsed(R"(buffer host.zero bytes=64 init=zero
buffer host.poison bytes=64
buffer host.random bytes=64 init=random
buffer host.window bytes=16 at=host.zero[16] init=random
buffer host.plain bytes=16 at=host.zero[40]
buffer host.inner bytes=8 at=host.window[4] init=zero
signal host.alone value=0x1122334455667788
signal host.half value=7 bits=32 at=host.random[12]
signal host.wide value=0x99 at=host.poison[8]
)");
  Memory one{s, 1}, two{s, 2};
  const detail::FirstContents first{s};
  std::size_t known = 0, unknown = 0;
  const auto compare = [&](GpuVa va, std::size_t bytes) {
    CAPTURE(va.value, bytes);
    const auto v = first.word(va, bytes);
    (v ? known : unknown) += 1;
    if (v) CHECK(*v == one.word(va, bytes));
    if (v) CHECK(*v == two.word(va, bytes));
  };
  for (std::size_t b = 0; b < 3; ++b)
    for (std::uint64_t at = 0; at < 64; at += 4) {
      compare(link_buffer(b) + at, 4);
      if (at % 8 == 0) compare(link_buffer(b) + at, 8);
    }
  compare(link_signal(0), 8);
  compare(link_signal(0), 4);
  CHECK(known == 14 + 6 + 2 + 1 + 1 + 2);
  CHECK(unknown == 48 + 24 + 2 - known);
}

TEST_CASE("what depends on the seed, is poison or is nowhere is not known") {
  const auto s = parsed("buffer host.p bytes=64\nbuffer host.r bytes=64 init=random\nsignal host.s value=1 bits=32\n");
  const detail::FirstContents first{s};
  CHECK_FALSE(first.word(link_buffer(0), 4));
  CHECK_FALSE(first.word(link_buffer(1), 4));
  CHECK_FALSE(first.word(GpuVa{0x1000}, 4));
  CHECK(first.word(link_signal(0), 4) == 1u);
  CHECK_FALSE(first.word(link_signal(0), 8));  // only half of it is declared
}
