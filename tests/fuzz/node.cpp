// SPDX-License-Identifier: MIT
// Ioctls of any number, size and content, and any dwords in rings of the queues that they make: no crash, an errno that
// the kernel knows, nothing written where the caller gave no room, no round without end; and when all is destroyed and
// freed again, nothing is held any more.
//
// The node says on stderr what it refuses to run: -close_fd_mask=2.
//
// A byte picks what happens, the bytes behind it are its arguments. Addresses, handles and GPUs are taken from those
// that exist, mostly: no fuzzer would find them.
#include "../../lib/emulator/node/node.hpp"
#include "../../lib/emulator/node_options.hpp"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

using namespace sdma;
using namespace sdma::emulator;
using kfd::Nr;

namespace {

constexpr std::uint64_t kPageBytes = 4096, kUserBytes = 4 * kPageBytes, kVa = 0x7e00'0000'0000,
                        kLargestObject = 1 << 18;

/// Read when a node is first made.
const bool kOptionsSet = [] {
  ::setenv("SDMA_EMULATE_GPUS", "2", 1);
  ::setenv("SDMA_EMULATE_VRAM", "4M", 1);
  ::setenv("SDMA_EMULATE_ORDER", "rocr", 1);
  return true;
}();

void require(bool holds) {
  if (!holds) __builtin_trap();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : *at_++; }
  template <class T> T value() {
    T v{};
    const auto n = std::min<std::size_t>(sizeof v, static_cast<std::size_t>(end_ - at_));
    std::memcpy(&v, at_, n);
    at_ += n;
    return v;
  }

 private:
  const std::uint8_t *at_, *end_;
};

/// The caller's pages, with a page behind them that must stay as it is.
std::byte* user_pages() {
  static auto* const p = static_cast<std::byte*>(
      ::mmap(nullptr, kUserBytes + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return p;
}

class Client {
 public:
  explicit Client(Input in) : in_(in) {
    std::memset(user_pages(), 0, kUserBytes);
    std::memset(user_pages() + kUserBytes, 0xa5, kPageBytes);
    for (std::uint32_t g = 0; g < node_.memory.gpus(); ++g) {
      node_.memory.gpu(g).acquired = (in_.byte() & 7) != 7;
      before_.push_back(node_.memory.available(g));
    }
  }

  void run() {
    for (int n = 0; n < 200 && !in_.empty(); ++n) act();
    serve();
    clean_up();
    for (std::size_t i = 0; i < kPageBytes; ++i) require(user_pages()[kUserBytes + i] == std::byte{0xa5});
  }

 private:
  std::uint32_t gpu_id() {
    const auto b = in_.byte();
    return b < 240 ? tree().node().gpus[b % node_.memory.gpus()].gpu_id : b;
  }
  std::uint64_t handle() { return handles_.empty() ? in_.byte() : handles_[in_.byte() % handles_.size()].handle; }
  std::uint64_t user(std::uint8_t where) { return reinterpret_cast<std::uint64_t>(user_pages()) + where * 64; }
  /// An address that no program has.
  static std::uint64_t wild(std::uint8_t b) { return b < 128 ? b * 8 : ~std::uint64_t{0} << (b % 32); }

  std::uint64_t word() {
    const auto b = in_.byte();
    switch (b % 11) {
      case 0: return 0;
      case 1: return in_.byte();
      case 2: return kVa + in_.value<std::uint16_t>() * 256;
      case 3: return handle();
      case 4: return gpu_id();
      case 5: return user(in_.byte());
      case 6: return wild(in_.byte());
      case 7: return std::uint64_t{1} << (in_.byte() % 64);
      case 8: return gpu_id() | std::uint64_t{in_.value<std::uint32_t>()} << 32;
      case 9: return in_.value<std::uint64_t>();
      default: return in_.value<std::uint16_t>() | std::uint64_t{gpu_id()} << 32;
    }
  }

  /// What a real caller may get wrong, and this process must not: pointers to its heap, waits without end, terabytes.
  static std::uint64_t tame(std::uint64_t pointer) {
    const auto begin = reinterpret_cast<std::uint64_t>(user_pages());
    const bool harmless = pointer < kPageBytes || pointer >= std::uint64_t{1} << 47;
    return harmless || (pointer >= begin && pointer < begin + kUserBytes) ? pointer : begin + pointer % 2048;
  }
  template <class A> static A& as(std::byte* p) { return *reinterpret_cast<A*>(p); }
  static void tame(Nr nr, std::byte* p) {
    switch (nr) {
      case Nr::get_process_apertures_new: {
        auto& a = as<kfd::GetAperturesNew>(p);
        a.apertures = tame(a.apertures);
        break;
      }
      case Nr::wait_events: {
        auto& a = as<kfd::WaitEvents>(p);
        a.events = tame(a.events);
        a.timeout_ms &= 1;
        break;
      }
      case Nr::map_memory:
      case Nr::unmap_memory: {
        auto& a = as<kfd::MapMemory>(p);
        a.gpu_ids = tame(a.gpu_ids);
        break;
      }
      case Nr::alloc_memory: {
        auto& a = as<kfd::AllocMemory>(p);
        if ((a.flags & kfd::kUserptr) != 0) a.mmap_offset = tame(a.mmap_offset) & ~(kPageBytes - 1);
        if ((a.flags & kfd::kUserptr) != 0) a.bytes = std::min(a.bytes, kUserBytes);
        else if (a.bytes < std::uint64_t{1} << 40) a.bytes = std::min(a.bytes, kLargestObject);
        break;
      }
      case Nr::dbg_trap: {
        // Of this process, or of none; `info` is at the place of `entries`, which have room for 200 queues.
        const auto begin = reinterpret_cast<std::uint64_t>(user_pages());
        auto& a = as<kfd::DebugTrap>(p);
        a.pid = a.pid % 4 == 0 ? 0 : static_cast<std::uint32_t>(::getpid());
        a.op %= 18;
        auto& entries = a.snapshot.entries = tame(a.snapshot.entries);
        if (entries - begin < kUserBytes) entries = begin + (entries - begin) % 2048;
        if (a.op >= static_cast<std::uint32_t>(kfd::DebugOp::queue_snapshot)) a.snapshot.entry_bytes %= 64;
        break;
      }
      case Nr::get_dmabuf_info: {
        auto& a = as<kfd::GetDmabufInfo>(p);
        a.metadata = tame(a.metadata);
        break;
      }
      case Nr::get_tile_config: {
        auto& a = as<kfd::GetTileConfig>(p);
        a.tiles = tame(a.tiles);
        a.macro_tiles = tame(a.macro_tiles);
        break;
      }
      default: break;
    }
  }

  static bool known(int error) {
    for (const int e : {0,      EINVAL, EFAULT, ENOMEM,   ENODEV, EBUSY, EPERM,   EACCES, EMFILE, EBADF, ENOTTY,
                        ENOENT, ENOSPC, ESRCH,  EALREADY, EAGAIN, EINTR, ENODATA, EIO,    EEXIST, 524})
      if (e == error) return true;
    return false;
  }

  int call(Nr nr, std::byte* args, std::size_t bytes) {
    const int error = kfd_ioctl(node_, kfd::request(nr, kfd::kBoth, bytes), args);
    require(known(error));
    if (error == 0 && bytes >= sizeof(kfd::AllocMemory) && nr == Nr::alloc_memory)
      keep(as<kfd::AllocMemory>(args).handle);
    if (error == 0 && bytes >= sizeof(kfd::ImportDmabuf) && nr == Nr::import_dmabuf)
      keep(as<kfd::ImportDmabuf>(args).handle);
    if (error == 0 && bytes >= sizeof(kfd::ImportIpc) && nr == Nr::ipc_import) keep(as<kfd::ImportIpc>(args).handle);
    if (error == 0 && bytes >= sizeof(kfd::SmiEvents) && nr == Nr::smi_events)
      files_.push_back(static_cast<int>(as<kfd::SmiEvents>(args).fd));
    if (error == 0 && bytes >= sizeof(kfd::ExportDmabuf) && nr == Nr::export_dmabuf)
      files_.push_back(static_cast<int>(as<kfd::ExportDmabuf>(args).fd));
    return error;
  }
  template <class A> int call(Nr nr, A& a) { return call(nr, reinterpret_cast<std::byte*>(&a), sizeof a); }
  void keep(std::uint64_t h) { handles_.push_back({h}); }

  void any_ioctl() {
    alignas(8) std::array<std::byte, 1024> args{};
    const auto number = in_.byte() % 48;
    const auto nr = number < 46 ? static_cast<Nr>(number) : number == 46 ? Nr::ipc_import : Nr::ipc_export;
    // Short ones mostly, as structs are; a wrong size now and then.
    const std::size_t bytes = in_.byte() < 200 ? 96 : in_.value<std::uint16_t>() % 512;
    for (std::size_t i = 0, words = in_.byte() % 12; i < words; ++i) as<std::uint64_t>(args.data() + i * 8) = word();
    tame(nr, args.data());
    const auto sent = args;
    // An event page stays pinned as long as the process lives: arguments that would set it are too short on purpose.
    if (nr == Nr::create_event && as<kfd::CreateEvent>(args.data()).page_offset != 0) page_ = true;
    const auto handles = handles_.size();
    (void)call(nr, args.data(), bytes);
    require(std::equal(args.begin() + static_cast<std::ptrdiff_t>(bytes), args.end(),
                       sent.begin() + static_cast<std::ptrdiff_t>(bytes)));
    // A caller that leaves no room for the handle has lost it, and so have we.
    if ((nr == Nr::alloc_memory || nr == Nr::import_dmabuf || nr == Nr::ipc_import) && handles_.size() == handles)
      lost_ = true;
  }

  void wild_pointer() {
    const auto nr = in_.byte();
    const int error = kfd_ioctl(node_, _IOC(_IOC_READ, 'K', nr, 8 + in_.byte() % 90),
                                reinterpret_cast<void*>(wild(static_cast<std::uint8_t>(in_.byte() | 1))));
    require(error == EFAULT || error == EINVAL || error == ENOTTY);
  }

  void any_drm_call() {
    alignas(8) std::array<std::byte, 64> args{};
    for (std::size_t i = 0; i < 8; ++i) as<std::uint64_t>(args.data() + i * 8) = word();
    const unsigned numbers[] = {0x00, 0x05, 0x45, in_.byte(), 0x40 + in_.byte() % 17u, 0x48, 0x2d + in_.byte() % 2u};
    const auto nr = numbers[in_.byte() % 7];
    // Strings of VERSION and the answer of INFO go through pointers.
    for (const std::size_t at : {std::size_t{0}, std::size_t{24}, std::size_t{40}, std::size_t{56}})
      as<std::uint64_t>(args.data() + at) = tame(as<std::uint64_t>(args.data() + at));
    if (nr == 0x45) as<std::uint32_t>(args.data() + 12) %= 0x20;
    if (nr == drm::kGemOp) as<drm::GemOp>(args.data()).value = tame(as<drm::GemOp>(args.data()).value);
    const bool exports = nr == drm::kPrimeHandleToFd;  // has room for the descriptor, so that it can be closed
    const auto minor = tree().node().gpus.front().render_minor + in_.byte() % 3;
    const auto bytes = exports ? sizeof args : in_.byte() % 65u;
    const int error = drm_ioctl(&node_, {.tag = drm_tag(minor, in_.byte() % 3), .ours = true},
                                _IOC(_IOC_READ | _IOC_WRITE, 'd', nr, bytes), args.data());
    require(known(error));
    if (exports && error == 0) files_.push_back(as<drm::Prime>(args.data()).fd);
  }

  /// An object that is as it should be, mapped for all GPUs; 0 if there is no room.
  std::uint64_t object(std::uint64_t va, std::uint64_t bytes, std::uint32_t flags, std::uint32_t id) {
    kfd::AllocMemory a{.va = va, .bytes = bytes, .handle = 0, .mmap_offset = 0, .gpu_id = id, .flags = flags};
    if ((flags & kfd::kUserptr) != 0) a.mmap_offset = reinterpret_cast<std::uint64_t>(user_pages());
    if (call(Nr::alloc_memory, a) != 0) return 0;
    std::vector<std::uint32_t> ids;
    for (const auto& g : tree().node().gpus) ids.push_back(g.gpu_id);
    kfd::MapMemory m{.handle = a.handle,
                     .gpu_ids = reinterpret_cast<std::uint64_t>(ids.data()),
                     .count = static_cast<std::uint32_t>(ids.size()),
                     .done = 0};
    (void)call(Nr::map_memory, m);
    return a.handle;
  }

  void good_object() {
    const std::uint32_t kinds[] = {kfd::kVram, kfd::kGtt, kfd::kUserptr, kfd::kGtt | kfd::kAqlQueue};
    const auto b = in_.byte();
    const auto va = kVa + std::uint64_t{in_.byte()} * kPageBytes;
    const auto kind = kinds[b % 4];
    const auto pages = std::uint64_t{1} << (b / 4 % 4);
    (void)object(va, std::min(pages * kPageBytes, kind == kfd::kUserptr ? kUserBytes : kLargestObject),
                 kind | ((b & 128) != 0 ? 0u : std::uint32_t{kfd::kWritable}), gpu_id());
  }

  void good_queue() {
    const auto b = in_.byte();
    const auto va = kVa + (1 << 22) + queues_ * 4 * kPageBytes;
    const auto id = gpu_id();
    ++queues_;
    if (object(va, kPageBytes, kfd::kGtt | kfd::kWritable, id) == 0) return;
    if (object(va + 2 * kPageBytes, kPageBytes, kfd::kGtt | kfd::kWritable, id) == 0) return;
    kfd::CreateQueue a{};
    a.ring = va;
    a.ring_bytes = kPageBytes;
    a.rptr = va + 2 * kPageBytes + 128;
    a.wptr = va + 2 * kPageBytes + 56;
    a.gpu_id = id;
    a.type = b % 5;
    a.percentage = 100;
    a.sdma_engine_id = b / 8;
    if (call(Nr::create_queue, a) == 0) rings_.push_back({a, node_.memory.index(id)});
  }

  /// An export shares exactly the object's bytes; an import and a forged handle change nothing that others hold.
  void pass_on() {
    const auto h = handle();
    auto* o = node_.memory.find(h);
    kfd::ExportDmabuf out{.handle = h, .flags = in_.byte(), .fd = 0};
    const int error = call(Nr::export_dmabuf, out);
    require(error == (!o ? EINVAL : o->pages ? 0 : (o->flags & kfd::kUserptr) != 0 ? EPERM : EINVAL));
    if (error != 0) return;
    const int fd = static_cast<int>(out.fd);
    const auto info = object_of(fd);
    require(info && info->bytes == o->pages->info.bytes && is_dmabuf(*descriptor_of(fd, &node_.arena)));
    std::byte b{in_.byte()};
    require(::pread(fd, &b, 1, 0) == -1 && ::pwrite(fd, &b, 1, 0) == -1);
    const int file = open_object(fd, *info);
    const auto at = in_.value<std::uint32_t>() % info->bytes;
    const auto position = static_cast<off_t>(info->offset + at);
    require(::pwrite(file, &b, 1, position) == 1 && o->host[at] == b);
    o->host[at] = b ^ std::byte{0xff};
    require(::pread(file, &b, 1, position) == 1 && o->host[at] == b && ::ftruncate(file, 0) == -1);
    ::close(file);
    kfd::ImportDmabuf in{
        .va = kVa + std::uint64_t{in_.byte()} * kPageBytes, .handle = 0, .gpu_id = gpu_id(), .fd = out.fd};
    (void)call(Nr::import_dmabuf, in);
    kfd::ExportIpc ipc{.handle = h, .shared = {}, .gpu_id = gpu_id(), .flags = 0};
    if (call(Nr::ipc_export, ipc) != 0) return;
    kfd::ImportIpc from{};
    std::copy_n(ipc.shared, 4, from.shared);
    from.va = in.va;
    from.gpu_id = gpu_id();
    const auto word = in_.byte() % 8;
    // The number of one of our threads would be a number of this process.
    if (word < 4) from.shared[word] ^= 1u << (in_.byte() % 8 + (word == 0 ? 16 : 0));
    const int imported = call(Nr::ipc_import, from);
    require(word >= 4 || imported != 0);
  }

  /// What mmap of a device finds at any offset: nothing, or bytes of objects.
  void any_offset() {
    const auto offset = in_.byte() < 128 ? word() : kFirstObject + in_.value<std::uint32_t>();
    const auto bytes = in_.value<std::uint32_t>();
    const auto place = node_.arena.find(offset, bytes);
    if (!place || offset < kFirstObject) return;
    require(place->offset >= kFirstObject && place->offset + bytes <= kArenaBytes);
  }

  std::optional<std::uint32_t> gpu_of_ring(const kfd::CreateQueue& q, std::uint32_t g) {
    return node_.memory.host(g, q.ring, q.ring_bytes) && node_.memory.host(g, q.wptr, 8) ? std::optional(g)
                                                                                         : std::nullopt;
  }

  /// Dwords into a ring, then wptr, then the doorbell: any values.
  void submit() {
    if (rings_.empty()) return;
    const auto& [q, g] = rings_[in_.byte() % rings_.size()];
    if (!gpu_of_ring(q, g)) return;
    auto* dwords = reinterpret_cast<std::uint32_t*>(node_.memory.host(g, q.ring, q.ring_bytes));
    auto* wptr = reinterpret_cast<std::uint64_t*>(node_.memory.host(g, q.wptr, 8));
    const auto how = in_.byte();
    const std::size_t n = how % 32;
    const auto begin = *wptr / 4;
    for (std::size_t i = 0; i < n; ++i) dwords[(begin + i) % (q.ring_bytes / 4)] = dword();
    if ((how & 32) != 0) *wptr = (begin + n) * 4;
    const auto value = (how & 64) != 0 ? (begin + n) * 4 : word();
    if ((how & 32) == 0) *wptr = value;
    auto* page = reinterpret_cast<std::uint64_t*>(node_.memory.doorbells(g));
    if ((how & 128) == 0) __atomic_store_n(page + q.doorbell_offset % kfd::kDoorbellBytes / 8, value, __ATOMIC_RELEASE);
    if (q.type == kfd::kQueueComputeAql && (how & 32) != 0) *wptr = in_.byte();
  }

  std::uint32_t dword() {
    const auto b = in_.byte();
    if (b < 64) return b % 16;                                 // an opcode
    if (b < 96) return static_cast<std::uint32_t>(kVa >> 32);  // the high half of an address
    if (b < 160) return static_cast<std::uint32_t>(kVa) + in_.value<std::uint16_t>() * 8;  // the low one
    if (b < 176) return static_cast<std::uint32_t>(kVa) + (1 << 22) + in_.value<std::uint16_t>() * 4;
    return in_.value<std::uint32_t>();
  }

  /// Until nothing is left to do but wait. A ring may hold jumps into itself without end; rounds are finite then.
  void serve() {
    for (std::uint32_t g = 0; g < node_.memory.gpus(); ++g)
      for (std::uint32_t n = 0; n < 64 && node_.queues.server(g).turn() == Progress::progressed; ++n) {}
  }

  void act() {
    switch (in_.byte() % 10) {
      case 0:
      case 1: return any_ioctl();
      case 2: return wild_pointer();
      case 3: return any_drm_call();
      case 4: return good_object();
      case 5: return good_queue();
      case 6: return submit();
      case 8: return pass_on();
      case 9: return any_offset();
      default: return serve();
    }
  }

  void clean_up() {
    for (std::uint32_t id = 0; id < kfd::kMaxQueues; ++id) {
      kfd::DestroyQueue d{.queue_id = id, .pad = 0};
      const bool there = node_.queues.exists(id);
      require(call(Nr::destroy_queue, d) == (there ? 0 : EINVAL));
    }
    bool all = true;
    for (const auto h : handles_) {
      if (!node_.memory.find(h.handle)) continue;
      for (const auto& g : tree().node().gpus) {
        kfd::MapMemory m{
            .handle = h.handle, .gpu_ids = reinterpret_cast<std::uint64_t>(&g.gpu_id), .count = 1, .done = 0};
        (void)call(Nr::unmap_memory, m);
      }
      kfd::FreeMemory f{h.handle};
      const int error = call(Nr::free_memory, f);
      require(error == 0 || (error == EBUSY && page_));
      all = all && error == 0;
    }
    for (const int fd : files_) ::close(fd);
    if (!all || lost_) return;
    for (std::uint32_t g = 0; g < node_.memory.gpus(); ++g) require(node_.memory.available(g) == before_[g]);
  }

  struct Held {
    std::uint64_t handle;
  };
  struct RingOf {
    kfd::CreateQueue queue;
    std::uint32_t gpu;
  };

  Input in_;
  Node node_{Drive::caller};
  std::vector<Held> handles_{};
  std::vector<RingOf> rings_{};
  std::vector<int> files_{};
  std::vector<std::uint64_t> before_{};
  std::uint64_t queues_ = 0;
  bool page_ = false, lost_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (kOptionsSet) Client(Input(data, size)).run();
  return 0;
}
