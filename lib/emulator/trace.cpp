#include "trace.hpp"

#include "options.hpp"
#include "real.hpp"

#include "sdma/trace/write.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace sdma::emulator {
namespace {

class File {
 public:
  File() : pid_(::getpid()) {
    trace_.events.resize(1);
    const auto& path = options().trace;
    if (path.empty()) return;
    // The tool has emptied the file, and the first to come keeps it: whoever finds it taken, or written, has a file of its own.
    fd_ = open(path);
    if (fd_ >= 0 && (::flock(fd_, LOCK_EX | LOCK_NB) != 0 || ::lseek(fd_, 0, SEEK_END) != 0)) {
      ::close(fd_);
      fd_ = open(fmt::format("{}.{}", path, pid_));
    }
    put_header();
  }

  std::mutex mutex;
  pid_t pid() const noexcept { return pid_; }

  void event(GpuId g, EngineId e, std::uint64_t queue, trace::Event v, const std::string& text = {}) {
    v.ns = trace::now();
    v.lane = lane(g, e, queue);
    if (!text.empty()) v.text = text_of(text);
    if (options().live) show(v);
    if (fd_ < 0) return;
    trace_.events[0] = v;
    const auto all = trace::to_json_lines(trace_);
    const auto last = all.rfind('\n', all.size() - 2);
    write(std::string_view(all).substr(last + 1));
    ++events_;
    put_header();
  }

 private:
  static int open(const std::string& path) { return SDMA_REAL(open)(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); }

  /// In one piece, so that the lines of several processes stay lines.
  void show(const trace::Event& v) {
    if (first_ns_ == 0) first_ns_ = v.ns;
    const auto line = trace::to_line(trace_, v, first_ns_);
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, line.data(), line.size());
  }
  void write(std::string_view line) {
    if (fd_ < 0) return;
    const auto n = ::pwrite(fd_, line.data(), line.size(), at_);
    if (n > 0) at_ += n;
  }
  void put_header() {
    const auto line = fmt::format("{{\"sdma_trace\":1,\"clock\":\"steady\",\"events\":{:>12},\"lost\":0}}\n", events_);
    if (at_ == 0) at_ = static_cast<off_t>(line.size());
    [[maybe_unused]] const auto n = ::pwrite(fd_, line.data(), line.size(), 0);
  }

  trace::LaneId lane(GpuId g, EngineId e, std::uint64_t queue) {
    const trace::Lane wanted{.group = fmt::format("gpu{}", g.value),
                             .name = e.value == kCompute ? fmt::format("compute queue {}", queue)
                                                         : fmt::format("engine {} queue {}", e.value, queue)};
    for (std::uint32_t i = 0; i < trace_.lanes.size(); ++i)
      if (trace_.lanes[i] == wanted) return {i};
    write(fmt::format("{{\"lane\":{},\"group\":\"{}\",\"name\":\"{}\"}}\n", trace_.lanes.size(), wanted.group,
                      wanted.name));
    trace_.lanes.push_back(wanted);
    return {static_cast<std::uint32_t>(trace_.lanes.size() - 1)};
  }
  trace::TextId text_of(const std::string& text) {
    for (std::uint32_t i = 0; i < trace_.texts.size(); ++i)
      if (trace_.texts[i] == text) return {i};
    trace_.texts.push_back(text);
    // Through the one writer, for its escapes.
    trace::Trace one{.texts = {text}};
    const auto all = trace::to_json_lines(one);
    const auto is = all.find("\"is\"");
    write(fmt::format("{{\"text\":{},{}", trace_.texts.size() - 1, std::string_view(all).substr(is)));
    return {static_cast<std::uint32_t>(trace_.texts.size() - 1)};
  }

  static constexpr std::uint32_t kCompute = 63;  ///< the place of compute queues among the engines

  const pid_t pid_;
  int fd_ = -1;
  off_t at_ = 0;
  std::uint64_t events_ = 0, first_ns_ = 0;
  trace::Trace trace_;
};

/// That of this process, made by the first thread that comes: a second one made would find the file taken by the first. A
/// forked child makes one of its own, and never touches the parent's lock.
File& file() {
  static std::atomic<File*> current{nullptr};
  static std::atomic<pid_t> maker{0};
  const auto self = ::getpid();
  for (;;) {
    auto* f = current.load(std::memory_order_acquire);
    if (f && f->pid() == self) return *f;
    auto made_by = maker.load(std::memory_order_relaxed);
    if (made_by != self && maker.compare_exchange_strong(made_by, self, std::memory_order_relaxed)) {
      f = new File;
      current.store(f, std::memory_order_release);
      return *f;
    }
    std::this_thread::yield();
  }
}

void put(GpuId g, EngineId e, std::uint64_t queue, const trace::Event& v, const std::string& text = {}) {
  if (!trace_on()) return;
  auto& f = file();
  const std::lock_guard lock(f.mutex);
  f.event(g, e, queue, v, text);
}

}  // namespace

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
    v.kept = static_cast<std::uint8_t>(std::min(p.view.dwords.size(), trace::Event::kDwords));
    std::copy_n(p.view.dwords.begin(), v.kept, v.dwords.begin());
  }
  put(g, e, p.queue, v);
}

void trace_fault(const Fault& f) noexcept {
  put(f.gpu, f.engine, f.queue, {.kind = trace::Kind::fault, .position = f.position, .address = f.va}, describe(f));
}

}  // namespace sdma::emulator
