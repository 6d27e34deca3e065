// SPDX-License-Identifier: MIT
// Ring bytes per second through reader, disassembler, JSON and checker, and text bytes per second through the
// assembler. The ring has the packets of a collective, repeated: [poll, 7 copies, atomic], with different addresses.
#include "sdma/stream/json.hpp"
#include "sdma/stream/rules.hpp"
#include "sdma/stream/text.hpp"
#include "sdma/stream/writer.hpp"

#include <benchmark/benchmark.h>

using namespace sdma;

namespace {

const std::vector<std::uint32_t>& ring() {
  static const auto dwords = [] {
    std::vector<std::uint32_t> out(1 << 18);
    Writer w{out};
    for (std::uint64_t i = 0; w.room() >= 63; ++i) {
      const auto epoch = static_cast<std::uint32_t>(i);
      if (w.put(PollMem{.addr = GpuVa{0x7f0000001000}, .func = Compare::ge, .reference = epoch}) != Errc::ok) break;
      for (std::uint64_t k = 0; k < 7; ++k)
        if (w.copy({.src = GpuVa{0x7f1122334000 + (i << 16)},
                    .dst = GpuVa{0x7f5500000000 + (k << 32) + (i << 16)},
                    .bytes = 65536}) != Errc::ok)
          break;
      if (w.put(sdma::Atomic{.addr = GpuVa{0x7f0000001008}, .value = ~0ull}) != Errc::ok) break;
    }
    out.resize(w.written().size());
    return out;
  }();
  return dwords;
}
void count(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * bytes));
}

void read(benchmark::State& state) {
  for (auto _ : state) {
    std::size_t packets = 0;
    for (Reader r{ring()}; r; ++packets) benchmark::DoNotOptimize(r.next());
    benchmark::DoNotOptimize(packets);
  }
  count(state, ring().size() * 4);
}
BENCHMARK(read);

void to_text_lines(benchmark::State& state) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    Disassembler{}.append(out, ring(), true);
    benchmark::DoNotOptimize(out.data());
  }
  count(state, ring().size() * 4);
  state.counters["text bytes per ring byte"] = static_cast<double>(out.size()) / static_cast<double>(ring().size() * 4);
}
BENCHMARK(to_text_lines);

void to_json(benchmark::State& state) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    JsonLines{}.append(out, ring(), true);
    benchmark::DoNotOptimize(out.data());
  }
  count(state, ring().size() * 4);
}
BENCHMARK(to_json);

void from_text(benchmark::State& state) {
  const auto text = disassemble(ring());
  for (auto _ : state) {
    auto dwords = assemble(text);
    benchmark::DoNotOptimize(dwords);
  }
  count(state, text.size());
}
BENCHMARK(from_text);

void check_rules(benchmark::State& state) {
  for (auto _ : state) {
    auto found = check_stream(ring());
    benchmark::DoNotOptimize(found);
  }
  count(state, ring().size() * 4);
}
BENCHMARK(check_rules);

}  // namespace

BENCHMARK_MAIN();
