// SPDX-License-Identifier: MIT
// Errors, devices, memory and streams of sdma/client.h.
#include "handles.hpp"
#include "sdma/core/number.hpp"
#include "sdma/core/version.hpp"
#include "sdma/device/open.hpp"
#include "sdma/sync/describe.hpp"
#include "sdma/sync/wait.hpp"

#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <stdexcept>

using namespace sdma;
using client::done;
using client::made;
using client::refused;

namespace client {

LastError& last_error() noexcept {
  thread_local LastError last;
  return last;
}
int kind_of(Cause c) noexcept {
  switch (c) {
    case Cause::bad_argument: return SDMA_ERROR_ARGUMENT;
    case Cause::no_memory: return SDMA_ERROR_MEMORY;
    case Cause::no_device: return SDMA_ERROR_DEVICE;
    case Cause::queue_lost: return SDMA_ERROR_QUEUE_LOST;
    case Cause::other: break;
  }
  return SDMA_ERROR_OTHER;
}
int kind_of(Errc e) noexcept {
  switch (e) {
    case Errc::too_large:
    case Errc::bad_packet:
    case Errc::bad_argument:
    case Errc::wrong_generation:
    case Errc::unmapped: return SDMA_ERROR_ARGUMENT;
    case Errc::no_space:
    case Errc::timed_out: return SDMA_ERROR_TIMED_OUT;
    case Errc::stopped: return SDMA_ERROR_QUEUE_LOST;
    default: return SDMA_ERROR_OTHER;
  }
}

namespace {
/// A place in a file, or a rule, is that of an input.
int kind_in(const Diagnostic& d) noexcept {
  return d.cause == Cause::other && (d.at || !d.rule.empty()) ? SDMA_ERROR_ARGUMENT : kind_of(d.cause);
}
}  // namespace

Refused refused(const Diagnostic& d) {
  last_error() = {to_string(d), kind_in(d)};
  return {};
}
Refused refused(const std::vector<Diagnostic>& all) {
  std::string text;
  for (const auto& d : all) text += (text.empty() ? "" : "\n") + to_string(d);
  last_error() = {std::move(text), all.empty() ? SDMA_ERROR_OTHER : kind_in(all.front())};
  return {};
}
Refused refused(std::string where, std::string message, std::string hint, int kind) {
  last_error() = {
      to_string(Diagnostic{.where = std::move(where), .message = std::move(message), .hint = std::move(hint)}), kind};
  return {};
}
Refused refused(const std::string& where, const StreamRefusal& r) {
  char status[80] = "";
  if (r.status != 0)
    (void)std::snprintf(status, sizeof status, "the stream refused the word at 0x%llx, with status %d",
                        static_cast<unsigned long long>(r.word.value), r.status);
  return refused(where, r.status != 0 ? status : std::string(message(r.error)),
                 "does the stream belong to this device, and does it take such words (docs/stream_order.md)?",
                 r.status != 0 ? SDMA_ERROR_OTHER : kind_of(r.error));
}
Refused refused(const std::string& where, Errc e, const Opened& o, const Queue& q) {
  if (const auto fault = o.device->fault(q)) return refused(where, describe(*fault), "", SDMA_ERROR_QUEUE_LOST);
  return refused(where, std::string(message(e)), e == Errc::timed_out ? "set a larger ring, or release first" : "",
                 kind_of(e));
}

Refused lost(const std::string& where, std::string which) {
  return refused(where, std::move(which), "see what that rank's process says; open a new session for another run",
                 SDMA_ERROR_RANK_LOST);
}

int reach(const Opened& o, std::span<const WaitCondition> all, std::span<const Queue* const> queues, Deadline d,
          const Bound* bound) {
  constexpr std::chrono::milliseconds kGlance(50);
  for (;;) {
    const auto r = wait_all(all, d.within(kGlance));
    for (const auto* q : queues)
      if (const auto fault = o.device->fault(*q)) return refused("queue", describe(*fault), "", SDMA_ERROR_QUEUE_LOST);
    if (r) return SDMA_OK;
    if (auto which = bound ? bound->lost() : ""; !which.empty()) return lost("sdma_wait", std::move(which));
    if (!d.passed()) continue;
    last_error() = {describe(r.error(), [&](GpuVa va, std::span<std::byte> to) { return o.device->peek(va, to); }),
                    SDMA_ERROR_TIMED_OUT};
    return SDMA_TIMED_OUT;
  }
}

std::vector<std::pair<std::string, std::string>> settings(const char* text) {
  std::vector<std::pair<std::string, std::string>> all;
  std::istringstream words(text ? text : "");
  for (std::string word; words >> word;) {
    const auto at = word.find('=');
    if (at == std::string::npos || at == 0)
      throw std::invalid_argument("settings: '" + word + "' is not of the form name=value");
    all.emplace_back(word.substr(0, at), word.substr(at + 1));
  }
  return all;
}

std::uint64_t number(const std::pair<std::string, std::string>& s, std::uint64_t most) {
  const auto n = parse_size(s.second);
  if (!n || *n > most)
    throw std::invalid_argument("settings: " + s.first + "=" + s.second + " is not a number up to " +
                                std::to_string(most));
  return *n;
}

Deadline within(double seconds) noexcept {
  // NaN counts as none, and a century as for ever.
  const double bounded = std::isnan(seconds) ? 0 : std::fmin(std::fmax(seconds, 0), 3.2e9);
  return Deadline::in(std::chrono::nanoseconds(static_cast<std::int64_t>(bounded * 1e9)));
}

StreamCalls calls_of(const sdma_stream& s) noexcept {
  using Call = int(void*, GpuVa, std::uint32_t) noexcept;
  constexpr Call* kWrite = [](void* p, GpuVa word, std::uint32_t value) noexcept {
    const auto& stream = *static_cast<const sdma_stream*>(p);
    return stream.write(stream.stream, word.value, value);
  };
  constexpr Call* kHold = [](void* p, GpuVa word, std::uint32_t value) noexcept {
    const auto& stream = *static_cast<const sdma_stream*>(p);
    return stream.hold(stream.stream, word.value, value);
  };
  return {.stream = const_cast<sdma_stream*>(&s), .write = kWrite, .hold = kHold};
}

namespace {

/// A stream of the host is the thread that calls.
constexpr double kHoldSeconds = 60;

std::optional<Word> known(void* opened, std::uint64_t word) {
  auto& o = *static_cast<Opened*>(opened);
  const std::lock_guard lock(o.mutex);
  const auto at = o.words.find(word);
  return at == o.words.end() ? std::nullopt : std::optional(at->second);
}
int host_write(void* opened, std::uint64_t word, std::uint32_t value) {
  const auto w = known(opened, word);
  if (w) w->signal.set(value);
  return w ? 0 : 1;
}
int host_hold(void* opened, std::uint64_t word, std::uint32_t value) {
  const auto w = known(opened, word);
  if (!w) return 1;
  const WaitCondition condition[] = {{w->signal, Compare::eq, value, {}}};
  return reach(*static_cast<Opened*>(opened), condition, {}, within(kHoldSeconds), w->bound);
}

/// Functions of the process's libcuda, which the device has loaded.
struct CudaStreams {
  using Call = int(void* stream, unsigned long long word, std::uint32_t value, unsigned flags);
  using Copy = int(unsigned long long to, unsigned long long from, std::size_t bytes, void* stream);
  Call* write{};
  Call* hold{};
  Copy* copy{};
};
const CudaStreams& cuda_streams() {
  static const CudaStreams calls = [] {
    CudaStreams c;
    if (void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
      using Get = int(const char*, void**, int, std::uint64_t, int*);
      auto* const get = reinterpret_cast<Get*>(dlsym(library, "cuGetProcAddress_v2"));
      const auto find = [&](const char* name, auto*& call) {
        void* at = nullptr;
        int found = 0;
        if (get && get(name, &at, 12000, 0, &found) == 0) call = reinterpret_cast<std::decay_t<decltype(call)>>(at);
      };
      find("cuStreamWriteValue32", c.write);
      find("cuStreamWaitValue32", c.hold);
      find("cuMemcpyAsync", c.copy);
    }
    return c;
  }();
  return calls;
}
int cuda_write(void* stream, std::uint64_t word, std::uint32_t value) {
  return cuda_streams().write(stream, word, value, 0);
}
int cuda_hold(void* stream, std::uint64_t word, std::uint32_t value) {
  constexpr unsigned kEqual = 1;
  return cuda_streams().hold(stream, word, value, kEqual);
}

int cuda_copy(void* p, GpuVa to, GpuVa from, std::uint64_t bytes) noexcept {
  return cuda_streams().copy(to.value, from.value, bytes, static_cast<const sdma_stream*>(p)->stream);
}
/// Of a thread of the software device, whose addresses are the host's.
int host_copy(void*, GpuVa to, GpuVa from, std::uint64_t bytes) noexcept {
  std::memcpy(reinterpret_cast<void*>(to.value), reinterpret_cast<const void*>(from.value), bytes);
  return 0;
}

sdma_device* open(const char* kind, const char* text) {
  const auto k = kind ? device_kind(kind) : std::nullopt;
  if (!k)
    return refused("sdma_open", std::string("there is no device '") + (kind ? kind : "NULL") + "'",
                   "the devices are " + std::string(kDeviceNames));
  OpenOptions o;
  Ranks ranks{.patience = 60};
  for (const auto& s : settings(text)) {
    const auto& [name, value] = s;
    if (name == "gpus") o.gpus = o.soft.gpus = static_cast<std::uint32_t>(number(s, 64));
    else if (name == "seed") o.soft.seed = number(s);
    else if (name == "rank") ranks.rank = static_cast<std::uint32_t>(number(s, 63));
    else if (name == "ranks") ranks.ranks = static_cast<std::uint32_t>(number(s, 64));
    else if (name == "session") ranks.session = value;
    else if (name == "patience") ranks.patience = number(s, 1u << 20);
    else if (name != "order")
      return refused("sdma_open", "there is no setting '" + name + "'",
                     "gpus, order, seed, rank, ranks, session, patience");
    for (const auto order : {Ordering::strict, Ordering::rocr, Ordering::adversarial})
      if (name == "order" && value == sdma::name(order)) o.soft.ordering = order;
    if (name == "order" && value != sdma::name(o.soft.ordering))
      return refused("sdma_open", "there is no order '" + value + "'", "strict, rocr or adversarial");
  }
  if (ranks.rank >= ranks.ranks || (ranks.ranks > 1) == ranks.session.empty())
    return refused("sdma_open",
                   "rank " + std::to_string(ranks.rank) + " of " + std::to_string(ranks.ranks) + " with the session '" +
                       ranks.session + "'",
                   "ranks are 0 to ranks - 1, and several have a session: rank=0 ranks=2 session=FOLDER");
  auto device = open_device(*k, o);
  if (!device) {
    auto why = device.error();
    if (why.cause == Cause::other) why.cause = *k == DeviceKind::soft ? Cause::bad_argument : Cause::no_device;
    return refused(why);
  }
  auto note = caveat(**device);
  auto opened = std::make_shared<Opened>();
  opened->device = std::move(*device);
  opened->caveat = std::move(note);
  opened->ranks = std::move(ranks);
  return new sdma_device{std::move(opened)};
}

bool is_soft(void* opened) noexcept {
  return dynamic_cast<const SoftDevice*>(static_cast<const Opened*>(opened)->device.get()) != nullptr;
}

sdma_memory* adopt(sdma_device* d, void* pointer, std::uint64_t bytes) {
  const auto lent = [&](auto memory) -> sdma_memory* {
    if (!memory) return refused(memory.error());
    return new sdma_memory{d->open, std::move(*memory)};
  };
  if (auto* const cuda = dynamic_cast<CudaDevice*>(d->open->device.get())) return lent(cuda->adopt(pointer, bytes));
  if (auto* const rocr = dynamic_cast<RocrDevice*>(d->open->device.get())) return lent(rocr->adopt(pointer, bytes));
  return refused("sdma_adopt", "this device does not take memory of others", "use sdma_allocate, and its sdma_host");
}

}  // namespace

StreamCalls carrying(const sdma_stream& s) noexcept {
  auto calls = calls_of(s);
  if (s.write == cuda_write && cuda_streams().copy) calls.copy = cuda_copy;
  if (s.write == host_write && is_soft(s.stream)) calls.copy = host_copy;
  return calls;
}
}  // namespace client

const char* sdma_version(void) { return version().string.data(); }
std::uint32_t sdma_version_number(void) {
  const auto v = version();
  return 10000 * v.major + 100 * v.minor + v.patch;
}
const char* sdma_error(void) { return client::last_error().text.c_str(); }
int sdma_error_class(void) { return client::last_error().kind; }

sdma_device* sdma_open(const char* kind, const char* settings) {
  return made([&] { return client::open(kind, settings); });
}
void sdma_close(sdma_device* d) { delete d; }
std::uint32_t sdma_gpus(const sdma_device* d) {
  return d ? static_cast<std::uint32_t>(d->open->device->topology().gpus.size()) : 0;
}
const char* sdma_caveat(const sdma_device* d) { return d ? d->open->caveat.c_str() : ""; }

sdma_memory* sdma_allocate(sdma_device* d, std::int32_t where, std::uint64_t bytes) {
  return made([&]() -> sdma_memory* {
    if (!d) return refused("sdma_allocate", "the device is NULL");
    // On CUDA, what the host sees of a GPU's memory would be a second copy of it.
    MemoryRequest request{.bytes = bytes, .host_access = !dynamic_cast<CudaDevice*>(d->open->device.get())};
    if (where != SDMA_HOST) request.where = GpuId{static_cast<std::uint32_t>(where)};
    auto memory = d->open->device->allocate(request);
    if (!memory) return refused(memory.error());
    return new sdma_memory{d->open, std::move(*memory)};
  });
}
sdma_memory* sdma_adopt(sdma_device* d, void* pointer, std::uint64_t bytes) {
  return made([&]() -> sdma_memory* {
    if (!d) return refused("sdma_adopt", "the device is NULL");
    return client::adopt(d, pointer, bytes);
  });
}
std::uint64_t sdma_address(const sdma_memory* m) { return m ? m->memory.va().value : 0; }
void* sdma_host(const sdma_memory* m) { return m ? m->memory.host().data() : nullptr; }
void sdma_free(sdma_memory* m) { delete m; }

int sdma_issued_by(const sdma_device* d, sdma_issued* to) {
  return done([&]() -> int {
    if (!d || !to) return refused("sdma_issued_by", "the device or the place of the result is NULL");
    const auto* cuda = dynamic_cast<const CudaDevice*>(d->open->device.get());
    if (!cuda) return refused("sdma_issued_by", "only a cuda device gives its work to a driver");
    const auto n = cuda->issued();
    *to = {n.calls, n.copies, n.batches, n.boxes, n.rows, n.refused, n.wakes};
    return SDMA_OK;
  });
}
int sdma_stream_of(sdma_device* d, void* native, sdma_stream* to) {
  return done([&]() -> int {
    if (!d || !to) return refused("sdma_stream_of", "the device or the place of the result is NULL");
    if (dynamic_cast<RocrDevice*>(d->open->device.get()))
      return refused("sdma_stream_of", "streams of HIP are not made here",
                     "fill the struct with hipStreamWriteValue32 and hipStreamWaitValue32 (docs/stream_order.md)");
    if (!dynamic_cast<CudaDevice*>(d->open->device.get())) {
      *to = {d->open.get(), client::host_write, client::host_hold};
      return SDMA_OK;
    }
    if (const auto& c = client::cuda_streams(); !c.write || !c.hold)
      return refused("sdma_stream_of", "the driver lacks cuStreamWriteValue32 or cuStreamWaitValue32",
                     "install a driver of CUDA 12.0 or later");
    *to = {native, client::cuda_write, client::cuda_hold};
    return SDMA_OK;
  });
}
