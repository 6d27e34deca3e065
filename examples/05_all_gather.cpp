// SPDX-License-Identifier: MIT
// All-gather: each of N GPUs holds a part of a file, and at the end each holds all of it.
//
//            gpu0     gpu1     gpu2                   gpu0     gpu1     gpu2
//   before   A . .    . B .    . . C         after    A B C    A B C    A B C
//
// In one step, every GPU copies its part to every other GPU. All copies of a GPU are back to back in one queue of
// one engine, with one atomic after them and one doorbell ("b2b"). With 8 GPUs, each has 7 copies, 1 completion
// and 1 doorbell.
//
//   05_all_gather [FILE] [--device soft|kfd|cuda|rocr] [--gpus N] [--order strict|rocr|adversarial] [--seed S]
//                 [--trace FILE] [--help]
#include "sdma/core/number.hpp"
#include "sdma/stream/text.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/trace/write.hpp"
#include "support.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

using namespace sdma;
using example::must;

namespace {

struct Options {
  std::string file{};  // empty: generated data
  std::string trace = "trace.json";
  DeviceKind kind = DeviceKind::soft;
  SoftOptions device{};
};

constexpr char kUsage[] =
    "usage: 05_all_gather [FILE] [OPTION...]\n"
    "Each of N MI300X holds a part of FILE (default: 8 MiB of generated data); they all-gather it.\n"
    "  --device KIND   soft: a software node (default); kfd: the node of the kernel driver;\n"
    "                  cuda: NVIDIA GPUs\n"
    "  --gpus N        number of GPUs, 1 to 8 (default: 8)\n"
    "  --order MODE    with soft: ordering of packets: strict (default), rocr or adversarial\n"
    "  --seed S        seed for --order=rocr and adversarial (default: 0)\n"
    "  --trace FILE    with soft: write a trace: NAME.jsonl, NAME.html, or any other name for ui.perfetto.dev\n"
    "                  (default: trace.json; none: no trace); beside the last of these, NAME.html\n"
    "  --help          print this help\n";

[[noreturn]] void usage_error(const std::string& why) {
  std::fprintf(stderr, "05_all_gather: %s\n%s", why.c_str(), kUsage);
  std::exit(2);
}

std::uint64_t number(const std::string& option, const std::string& text) {
  const auto v = parse_count(text);
  if (!v) usage_error(option + ": '" + text + "' is not a number");
  return *v;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help" || word == "-h") std::fputs(kUsage, stdout), std::exit(0);
    if (word.size() < 2 || !word.starts_with("-")) {
      if (!o.file.empty()) usage_error("more than one FILE");
      o.file = word;
      continue;
    }
    const auto equals = word.find('=');
    if (equals == word.npos && i + 1 == argc) usage_error(word + ": unknown option, or its value is missing");
    const std::string value = equals == word.npos ? argv[++i] : word.substr(equals + 1);
    word = word.substr(0, equals);
    if (word == "--gpus")
      o.device.gpus = static_cast<std::uint32_t>(std::min<std::uint64_t>(number(word, value), 1000));
    else if (word == "--device") {
      const auto named = device_kind(value);
      if (!named) usage_error("--device: '" + value + "' is not " + std::string(kDeviceNames));
      o.kind = *named;
    } else if (word == "--seed") o.device.seed = number(word, value);
    else if (word == "--trace") o.trace = value;
    else if (word == "--order") {
      const Ordering all[] = {Ordering::strict, Ordering::rocr, Ordering::adversarial};
      const auto* at = std::find_if(std::begin(all), std::end(all), [&](Ordering x) { return name(x) == value; });
      if (at == std::end(all)) usage_error("--order: '" + value + "' is not one of strict, rocr, adversarial");
      o.device.ordering = *at;
    } else usage_error("unknown option " + word);
  }
  return o;
}

std::vector<std::byte> load(const std::string& path) {
  std::vector<std::byte> bytes;
  if (path.empty()) {
    bytes.resize(8 << 20);
    for (std::uint64_t state = 1; auto& b : bytes)
      b = static_cast<std::byte>((state = state * 6364136223846793005 + 1) >> 56);
    return bytes;
  }
  std::FILE* f = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!f) example::fail(path + ": cannot be read: " + std::strerror(errno));
  std::vector<std::byte> piece(1 << 20);
  while (const auto n = std::fread(piece.data(), 1, piece.size(), f))
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
  if (std::ferror(f)) example::fail(path + ": cannot be read: " + std::strerror(errno));
  if (f != stdin) std::fclose(f);
  if (bytes.empty()) example::fail(path + ": the file is empty: there is nothing to gather");
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  auto options = parse(argc, argv);
  const auto file = load(options.file);
  std::optional<trace::Recorder> recorder;
  if (options.trace != "none" && options.kind == DeviceKind::soft) options.device.trace = &recorder.emplace();
  const auto n = options.device.gpus;
  const auto device = must(open_device(options.kind, {.gpus = options.device.gpus, .soft = options.device}));
  example::need_gpus(*device, n);
  const auto* const soft = options.kind == DeviceKind::soft ? static_cast<const SoftDevice*>(device.get()) : nullptr;

  // Part i of the file belongs to GPU i; where N does not divide the size, the last ones are shorter, or empty.
  const std::uint64_t size = file.size(), part = (size + n - 1) / n;
  const auto begin = [&](std::uint32_t i) { return std::min(i * part, size); };
  const auto length = [&](std::uint32_t i) { return begin(i + 1) - begin(i); };

  std::vector<Memory> buffers;
  for (std::uint32_t i = 0; i < n; ++i) {
    buffers.push_back(must(device->allocate({.where = GpuId{i}, .bytes = size})));
    const auto all = buffers[i].host();
    std::memset(all.data(), 0xee,
                all.size());  // detects bytes that are never written, and touches every page before the timing
    std::memcpy(all.data() + begin(i), file.data() + begin(i), length(i));
  }
  example::flush_host_path(*device);  // the host wrote GPUs' memory: flush before the doorbells
  const SignalMemory left = must(device->create_signal({.value = n}));
  std::deque<Queue> queues;
  std::deque<Ring<>> rings;
  for (std::uint32_t i = 0; i < n; ++i) {
    // One engine for all peers of a GPU: the one next to the link to its neighbour.
    const auto engine = device->topology().engine_for(GpuId{i}, GpuId{(i + 1) % n});
    queues.push_back(must(device->create_queue({.gpu = GpuId{i}, .engine = *engine})));
    rings.emplace_back(queues.back().memory());
  }

  // The collective. Peers in a staggered order, so that no two GPUs begin with the same one.
  const auto start = Deadline::Clock::now();
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto copies = length(i) == 0 ? 0 : (n - 1) * (length(i) / kChunk + 1);
    const auto slot = must(rings[i].reserve(copies * dwords_of<CopyLinear>() + dwords_of<Atomic>()));
    Writer w{slot.dwords};
    Errc e = Errc::ok;
    for (std::uint32_t k = 1; k < n && length(i) != 0 && e == Errc::ok; ++k)
      e = w.copy({.src = buffers[i].va() + begin(i), .dst = buffers[(i + k) % n].va() + begin(i), .bytes = length(i)});
    if (e == Errc::ok) e = complete_with_atomic(w, left->va);
    if (e != Errc::ok) example::fail("gpu" + std::to_string(i) + ": " + std::string(message(e)));
    rings[i].publish(slot, w.written().size());
  }
  const auto done = wait(*left, Compare::eq, 0, Deadline::in(std::chrono::seconds(120)), rings[0]);
  const std::chrono::duration<double> took = Deadline::Clock::now() - start;
  if (!done) {
    for (auto f = device->wait_fault(Deadline::in(std::chrono::seconds(0))); f;
         f = device->wait_fault(Deadline::in(std::chrono::seconds(0))))
      std::fprintf(stderr, "%s\n", describe(*f).c_str());
    example::fail(describe(done.error(), [&](GpuVa va, std::span<std::byte> out) { return device->peek(va, out); }));
  }

  example::flush_host_path(*device);
  for (std::uint32_t i = 0; i < n; ++i)
    if (std::memcmp(buffers[i].host().data(), file.data(), size) != 0)
      example::fail("gpu" + std::to_string(i) + " holds data that differs from the file");

  std::printf("ring of gpu0, engine %u:\n", queues[0].engine().value);
  const auto dwords = rings[0].memory().dwords.first(rings[0].positions().committed / 4);
  std::fputs(disassemble(dwords).c_str(), stdout);
  if (soft) std::printf("\n%-6s %6s %9s %14s %10s\n", "gpu", "engine", "packets", "bytes", "doorbells");
  for (const auto& c : soft ? soft->counters() : std::vector<EngineCounters>{})
    std::printf("gpu%-3u %6u %9lu %14lu %10lu\n", c.gpu.value, c.engine.value, static_cast<unsigned long>(c.packets),
                static_cast<unsigned long>(c.bytes), static_cast<unsigned long>(c.doorbells));
  const double algbw = static_cast<double>(size) / took.count() / 1e9;
  std::printf(
      "\n%u GPUs x %lu bytes: every byte on every GPU is correct (%s)\n", n, static_cast<unsigned long>(size),
      (soft ? std::string(name(options.device.ordering)) + " ordering" : std::string(name(options.kind))).c_str());
  std::printf("%.3f ms, algbw %.2f GB/s, busbw %.2f GB/s%s\n", took.count() * 1e3, algbw, algbw * (n - 1) / n,
              soft ? ": this machine's memory, not an MI300X's" : "");
  if (recorder) {
    // A web page beside the trace for Perfetto: it opens without a network.
    const bool perfetto = trace::form_of(options.trace) == trace::Form::perfetto;
    const auto page = options.trace.substr(0, options.trace.rfind(".json")) + ".html";
    const auto snapshot = recorder->snapshot();
    auto saved = trace::save(snapshot, options.trace);
    if (saved && perfetto) saved = trace::save(snapshot, page);
    if (!saved) example::fail(to_string(saved.error()));
    if (perfetto) std::printf("timeline: %s (a page for any browser)\n", page.c_str());
    std::printf("%s: %s%s\n", perfetto ? "the same" : "timeline", options.trace.c_str(),
                perfetto ? " (open it in ui.perfetto.dev)" : "");
  }
  return example::printed();
}
