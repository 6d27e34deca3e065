// SPDX-License-Identifier: MIT
#include "trace.hpp"

#include "node_options.hpp"
#include "real.hpp"
#include "symbols.hpp"

#include "../trace/lines_writer.hpp"
#include "../trace/records_writer.hpp"
#include "sdma/core/file.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/trace/write.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace sdma::emulator {
namespace {

constexpr std::string_view kBinarySuffix = ".bin";
std::atomic<bool> own_addresses{false};

/// Is this file empty, or a recording before its first event?
bool has_no_event(int fd) {
  std::array<char, 256> head{};
  const auto n = ::pread(fd, head.data(), head.size(), 0);
  const std::string_view text(head.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return n == 0 || text == trace::LinesWriter::kEmpty || text == trace::RecordsWriter::empty();
}

class File {
 public:
  File() : pid_(::getpid()) {
    if (const auto& names = options().names; !names.empty()) {
      const auto text = read_file(names);
      auto table = text ? parse_names(*text, names) : Result<NameTable, Diagnostic>(text.error());
      if (table) names_.names = std::move(*table);
      else fmt::print(stderr, "sdma emulator: {}\n", to_string(table.error()));
    }
    const auto& path = options().trace;
    if (path.empty()) return;
    // `sdma emulate` has written a recording without events, and the first process with an event locks the file. A
    // process that finds it locked, or with events, creates its own.
    int fd = SDMA_REAL(open)(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && (::flock(fd, LOCK_EX | LOCK_NB) != 0 || !has_no_event(fd))) {
      ::close(fd);
      const auto made = create_fresh(fmt::format("{}.{}", path, pid_));
      fd = made ? made->fd : -1;
    }
    if (fd >= 0 && std::string_view(path).ends_with(kBinarySuffix)) records_.emplace(fd);
    else if (fd >= 0) lines_.emplace(fd);
  }

  std::mutex mutex;
  pid_t pid() const noexcept { return pid_; }
  void lose() noexcept {
    if (lines_) lines_->lose();
    if (records_) records_->lose();
  }

  void event(GpuId g, EngineId e, std::uint64_t queue, trace::Event v, const std::string& text = {}) {
    v.ns = trace::now();
    v.lane = {lane_of(g, e, queue)};
    if (!text.empty()) v.text = {place(names_.texts, text)};
    // A binary recording has no names of variables: to find out which addresses a packet has costs more than the rest.
    if (!records_ && own_addresses.load(std::memory_order_relaxed)) name_addresses(v);
    if (options().live) show(v);
    if (lines_) lines_->write(names_, v);
    if (records_) records_->write(names_, v);
  }

 private:
  void name_addresses(const trace::Event& v) {
    if (v.kind == trace::Kind::fault) name_address(v.address);
    if (v.kind != trace::Kind::packet_begin || v.dword_count == 0) return;
    const auto packet = Reader{v.packet(), catalogue(v.generation)}.next();
    if (!packet.whole() || packet.info->fields_unknown) return;
    for (const auto& f : packet.info->fields)
      if (f.kind == Kind::address) name_address(GpuVa{value_of(f, packet.dwords.data())});
  }
  void name_address(GpuVa va) {
    if (va.value == 0 || names_.names.find(va)) return;
    if (const auto range = symbols_.at(va)) names_.names.add(range->va, range->bytes, range->name);
  }

  /// Writes the line with one call, so that lines of several processes do not mix.
  void show(const trace::Event& v) {
    if (first_ns_ == 0) first_ns_ = v.ns;
    const auto line = trace::to_line(names_, v, first_ns_);
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, line.data(), line.size());
  }

  /// The index of a queue's lane.
  std::uint32_t lane_of(GpuId g, EngineId e, std::uint64_t queue) {
    auto& known = known_[((g.value * 64 + e.value) * 8 + queue) % known_.size()];
    if (known.lane == kNone || known.queue != queue || known.gpu != g || known.engine != e)
      known = {.gpu = g, .engine = e, .queue = queue, .lane = place(names_.lanes, lane(g, e, queue))};
    return known.lane;
  }
  static trace::Lane lane(GpuId g, EngineId e, std::uint64_t queue) {
    if (e == kComputeEngine) return {fmt::format("gpu{}", g.value), fmt::format("compute queue {}", queue)};
    return trace::queue_lane(g, e, fmt::format("queue {}", queue));
  }
  /// The index of `wanted`, which is appended if it is new.
  template <class T> static std::uint32_t place(std::vector<T>& all, T wanted) {
    const auto at = static_cast<std::uint32_t>(std::find(all.begin(), all.end(), wanted) - all.begin());
    if (at == all.size()) all.push_back(std::move(wanted));
    return at;
  }

  const pid_t pid_;
  std::uint64_t first_ns_ = 0;
  trace::Trace names_{};  ///< lanes, texts and names
  Symbols symbols_{};
  static constexpr std::uint32_t kNone = ~0u;
  struct KnownLane {
    GpuId gpu{};
    EngineId engine{};
    std::uint64_t queue{};
    std::uint32_t lane = kNone;
  };
  std::vector<KnownLane> known_ = std::vector<KnownLane>(4096);  ///< by a number that few queues share
  std::optional<trace::LinesWriter> lines_{};
  std::optional<trace::RecordsWriter> records_{};
};

std::atomic<pid_t> cached_process{0};
/// getpid without the system call.
pid_t process() noexcept {
  if (const auto known = cached_process.load(std::memory_order_relaxed)) return known;
  static const int watched = ::pthread_atfork(nullptr, nullptr, [] { cached_process.store(0); });
  const auto self = ::getpid();
  if (watched == 0) cached_process.store(self, std::memory_order_relaxed);
  return self;
}

/// The File of this process, created by the first thread that needs it; a second File would find the path locked by the
/// first. A forked child creates its own, and never touches the parent's lock.
File& file() {
  static std::atomic<File*> current{nullptr};
  static std::atomic<pid_t> maker{0};
  const auto self = process();
  for (;;) {
    auto* f = current.load(std::memory_order_acquire);
    if (f && f->pid() == self) return *f;
    auto made_by = maker.load(std::memory_order_relaxed);
    if (made_by != self && maker.compare_exchange_strong(made_by, self, std::memory_order_relaxed)) {
      try {
        f = new File;
      } catch (const std::exception&) {
        maker.store(0, std::memory_order_relaxed);  // the next event tries again
        throw;
      }
      current.store(f, std::memory_order_release);
      return *f;
    }
    std::this_thread::yield();
  }
}

/// `text` is called for the event's text. An event for which there is no memory is lost.
template <class Text> void put(GpuId g, EngineId e, std::uint64_t queue, const trace::Event& v, Text text) noexcept {
  if (!trace_on()) return;
  try {
    auto& f = file();
    const std::lock_guard lock(f.mutex);
    try {
      f.event(g, e, queue, v, text());
    } catch (const std::exception&) {
      f.lose();
    }
  } catch (const std::exception&) {  // not even a file; the first event that finds memory creates it
  }
}
void put(GpuId g, EngineId e, std::uint64_t queue, const trace::Event& v) noexcept {
  put(g, e, queue, v, [] { return std::string(); });
}

}  // namespace

void trace_own_addresses() noexcept { own_addresses.store(true, std::memory_order_relaxed); }

bool trace_on() noexcept { return options().live || !options().trace.empty(); }

void trace_queue(GpuId g, EngineId e, std::uint64_t queue, std::uint64_t n, bool created) noexcept {
  if (created) put(g, e, queue, {.kind = trace::Kind::queue_created, .value = n});
  else put(g, e, queue, {.kind = trace::Kind::queue_destroyed, .position = n});
}

void trace_doorbell(GpuId g, EngineId e, std::uint64_t queue, std::uint64_t position) noexcept {
  put(g, e, queue, {.kind = trace::Kind::doorbell, .position = position});
}

void trace_packet(GpuId g, EngineId e, const PacketEvent& p, bool begins) noexcept {
  trace::Event v{.kind = begins ? trace::Kind::packet_begin : trace::Kind::packet_end, .position = p.position};
  if (begins) {
    v.length = static_cast<std::uint32_t>(p.view.dwords.size());
    v.dword_count = static_cast<std::uint8_t>(std::min(p.view.dwords.size(), trace::Event::kDwords));
    std::copy_n(p.view.dwords.begin(), v.dword_count, v.dwords.begin());
    if (p.view.info) v.generation = p.view.info->generation;
  }
  put(g, e, p.queue, v);
}

void trace_fault(const Fault& f) noexcept {
  put(f.gpu, f.engine, f.queue, {.kind = trace::Kind::fault, .position = f.position, .address = f.va},
      [&] { return describe(f); });
}

}  // namespace sdma::emulator
