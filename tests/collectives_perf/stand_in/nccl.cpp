// SPDX-License-Identifier: MIT
// A libnccl.so.2 and a librccl.so.1 for machines without them: the calls that collective_perf makes, as copies on a
// GPU's streams (gpu.hpp): those of the stand-in for libcuda, or of HIP on the software node.
//
// As strict as NCCL or stricter: communicators are made in a group of all ranks, with a configuration that has NCCL's
// magic; a communicator without kernels takes only buffers that are registered in all ranks. The first collective of a
// size loads a module, so it blocks if a stream waits. It refuses whatever NCCL would refuse.
//
//   SDMA_STAND_IN_NCCL_VERSION=22703   an older version
//   SDMA_STAND_IN_NCCL_WRONG=1         rank 1 gets one byte less than it should
//   SDMA_STAND_IN_NCCL_WINDOWS=0       no windows
//   SDMA_STAND_IN_NCCL_FAIL=40         the 40th collective returns an error
//   SDMA_STAND_IN_NCCL_HANG=40         the 40th never returns
//   SDMA_STAND_IN_NCCL_STUCK=40        the 40th never ends on the GPU
//   SDMA_STAND_IN_NCCL_PROCESSES=1     each rank is a process: all-gathers only, of at most 64 KiB a rank
#include "gpu.hpp"
#include "setting.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace stand_in;
using gpu::Stream;

enum Status : int { kSuccess = 0, kGpuError = 1, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5 };

struct Id {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int undefined_1[4];
  const char* undefined_2;
  int undefined_3[2];
  const char* undefined_4;
  int undefined_5, cta_policy, undefined_6[4];
};

struct Clique;
struct Comm {
  Clique* clique;
  int rank;
  bool copies;
  std::vector<std::pair<const std::byte*, std::size_t>> windows{};
};
/// Where ranks of several processes meet: a file in memory, which the Id names.
struct Hall {
  static constexpr int kRanks = 8;
  static constexpr std::size_t kBytes = 64 << 10;
  struct Desk {
    alignas(64) std::uint32_t brought, taken;  ///< rounds
    alignas(4096) std::byte bytes[kBytes];
  } desks[kRanks];
};
struct Clique {
  std::vector<Comm*> comms{};
  Hall* hall = nullptr;  ///< of several processes
  std::uint32_t round = 0;
  std::set<std::size_t> warmed{};
  int ranks = 0;
};
enum class Kind { all_gather, all_to_all, broadcast, scatter, gather, send, receive };
struct Call {
  Kind kind;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
  int type;
  Comm* comm;
  Stream stream;
  int root = 0;  // of a send or receive: the peer
  std::size_t rank() const { return static_cast<std::size_t>(comm->rank); }
  bool at_root() const { return comm->rank == root; }
};

struct Library {
  int depth = 0;
  std::vector<Call> calls{};
  std::map<char, Clique*> cliques{};
  std::set<Clique*> unfinished{};
  char last_id = 0;
  long collectives = 0;
  std::string last_error{};
};
Library& library() {
  static auto* const only = new Library;
  return *only;
}

Status failed(Status s, const char* text) {
  library().last_error = text;
  return s;
}

bool several() { return setting("SDMA_STAND_IN_NCCL_PROCESSES", 0) != 0; }

Status enter(Clique& c, const Id& id) {
  if (c.hall || !several()) return kSuccess;
  const int fd = open(id.bytes + 1, O_RDWR | O_CLOEXEC);
  void* const at = fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Hall), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (at == MAP_FAILED || !gpu::pin(at, sizeof(Hall))) return failed(kSystemError, "stand-in: no memory to meet in");
  c.hall = static_cast<Hall*>(at);
  return kSuccess;
}

Status join(Comm** out, int ranks, Id id, int rank, bool copies) {
  if (library().depth == 0) return failed(kInvalidUsage, "stand-in: a single thread makes its ranks in a group");
  auto*& clique = library().cliques[id.bytes[0]];
  if (!clique) clique = new Clique;
  clique->ranks = ranks;
  clique->comms.resize(static_cast<std::size_t>(ranks));
  auto*& comm = clique->comms[static_cast<std::size_t>(rank)];
  if (comm) return failed(kInvalidUsage, "stand-in: this rank exists");
  comm = *out = new Comm{clique, rank, copies};
  if (const auto s = enter(*clique, id)) return s;
  library().unfinished.insert(clique);
  return kSuccess;
}

/// An all-gather of this process's only rank: through the hall.
Status cross(const Call& c) {
  auto& q = *c.comm->clique;
  if (c.kind != Kind::all_gather || c.bytes > Hall::kBytes)
    return failed(kInvalidUsage, "stand-in: only small all-gathers cross processes");
  const auto round = ++q.round;
  auto& mine = q.hall->desks[c.rank()];
  const bool wrong = setting("SDMA_STAND_IN_NCCL_WRONG", 0) != 0 && c.rank() == 1;
  bool good = true;
  for (int r = 0; r < q.ranks; ++r) good = good && gpu::wait(&q.hall->desks[r].taken, round - 1, c.stream);
  good = good && gpu::copy(mine.bytes, c.from, c.bytes, c.stream) && gpu::write(&mine.brought, round, c.stream);
  for (int r = 0; r < q.ranks; ++r) {
    auto& theirs = q.hall->desks[r];
    good = good && gpu::wait(&theirs.brought, round, c.stream) &&
           gpu::copy(c.to + c.bytes * static_cast<std::size_t>(r), theirs.bytes, c.bytes - wrong, c.stream);
  }
  return good && gpu::write(&mine.taken, round, c.stream) ? kSuccess : failed(kGpuError, "stand-in: a copy failed");
}

bool registered(const Comm& c, const std::byte* at, std::size_t bytes) {
  return std::any_of(c.windows.begin(), c.windows.end(),
                     [&](const auto& w) { return at >= w.first && at + bytes <= w.first + w.second; });
}

/// Bytes that the call reads and writes in this rank.
std::pair<std::size_t, std::size_t> touched(const Call& c) {
  const auto whole = c.bytes * static_cast<std::size_t>(c.comm->clique->ranks);
  switch (c.kind) {
    case Kind::all_gather: return {c.bytes, whole};
    case Kind::all_to_all: return {whole, whole};
    case Kind::broadcast: return {c.bytes, c.bytes};
    case Kind::scatter: return {c.at_root() ? whole : 0, c.bytes};
    case Kind::gather: return {c.bytes, c.at_root() ? whole : 0};
    case Kind::send:
    case Kind::receive: break;  // never of copy engines
  }
  return {};
}

Status check(const Call& c) {
  if (c.type != 1) return failed(kInvalidArgument, "stand-in: not bytes");
  const auto [read, written] = touched(c);
  if (c.kind >= Kind::send && c.comm->copies)
    return failed(kInvalidUsage, "stand-in: copy engines neither send nor receive");
  if (c.comm->copies && (!registered(*c.comm, c.from, read) || !registered(*c.comm, c.to, written)))
    return failed(kInvalidUsage, "stand-in: a buffer is not in a symmetric window");
  if (c.kind == Kind::all_gather && c.from != c.to + c.bytes * c.rank())
    return failed(kInvalidUsage, "stand-in: the all-gather is not in place");
  return kSuccess;
}

/// The first time that a size is used.
Status warm(Clique& c, std::size_t bytes) {
  if (!c.warmed.insert(bytes).second) return kSuccess;
  return gpu::load() ? kSuccess : failed(kGpuError, "stand-in: no context is current");
}

/// Which window has the address, and where. Copy engines write to a peer's window where the caller's own `to` is.
std::pair<std::size_t, std::ptrdiff_t> place(const Comm& c, const std::byte* at) {
  for (std::size_t i = 0; i < c.windows.size(); ++i)
    if (at >= c.windows[i].first && at < c.windows[i].first + c.windows[i].second) return {i, at - c.windows[i].first};
  return {c.windows.size(), 0};
}

/// What `c` sends to the rank of `other`, and where it goes; null if nothing does.
std::pair<const std::byte*, std::byte*> sent(const Call& c, const Call& other) {
  const auto mine = c.bytes * c.rank(), theirs = c.bytes * other.rank();
  switch (c.kind) {
    case Kind::all_gather: return {c.from, other.to + mine};
    case Kind::all_to_all: return {c.from + theirs, other.to + mine};
    case Kind::broadcast: return {c.at_root() ? c.from : nullptr, other.to};
    case Kind::scatter: return {c.at_root() ? c.from + theirs : nullptr, other.to};
    case Kind::gather: return {other.at_root() ? c.from : nullptr, other.to + mine};
    case Kind::send:
    case Kind::receive: break;
  }
  return {};
}

/// The k-th send from a rank to a peer meets the k-th receive there.
Status meet(const Call& c, const std::vector<Call>& group) {
  const auto same = [](const Call& a, const Call& b) {
    return a.kind == b.kind && a.comm == b.comm && a.root == b.root;
  };
  const auto before =
      std::count_if(group.begin(), group.begin() + (&c - group.data()), [&](const Call& x) { return same(x, c); });
  auto left = before;
  for (const auto& other : group) {
    if (other.kind == c.kind || other.kind < Kind::send || other.comm->clique != c.comm->clique ||
        other.comm->rank != c.root || other.root != c.comm->rank || left-- != 0)
      continue;
    if (other.bytes != c.bytes) return failed(kInvalidUsage, "stand-in: a send and its receive differ in length");
    const bool wrong = setting("SDMA_STAND_IN_NCCL_WRONG", 0) != 0 && c.root == 1;
    return c.kind == Kind::receive || gpu::copy(other.to, c.from, c.bytes - wrong, c.stream)
               ? kSuccess
               : failed(kGpuError, "stand-in: a copy failed");
  }
  return failed(kInvalidUsage, "stand-in: a send or receive without its counterpart hangs");
}

/// Each rank writes to all others.
Status perform(const Call& c, const std::vector<Call>& group) {
  if (c.comm->clique->hall) return cross(c);
  if (c.kind >= Kind::send) return meet(c, group);
  std::size_t peers = 0;
  for (const auto& other : group) {
    if (other.comm->clique != c.comm->clique) continue;
    ++peers;
    if (c.comm->copies && place(*c.comm, c.to) != place(*other.comm, other.to))
      return failed(kInvalidUsage, "stand-in: ranks differ in where the result begins in its window");
    const auto [from, to] = sent(c, other);
    if (!from || from == to) continue;
    const bool wrong = setting("SDMA_STAND_IN_NCCL_WRONG", 0) != 0 && other.rank() == 1;
    if (!gpu::copy(to, from, c.bytes - wrong, c.stream)) return failed(kGpuError, "stand-in: a copy failed");
  }
  return peers == static_cast<std::size_t>(c.comm->clique->ranks)
             ? kSuccess
             : failed(kInvalidUsage, "stand-in: a collective without all ranks hangs");
}

int collective(const Call& c) {
  const auto number = ++library().collectives;
  if (number == setting("SDMA_STAND_IN_NCCL_FAIL", 0)) return failed(kSystemError, "stand-in: as the environment says");
  if (number == setting("SDMA_STAND_IN_NCCL_HANG", 0))
    for (;;) pause();
  if (number == setting("SDMA_STAND_IN_NCCL_STUCK", 0)) gpu::stick(c.stream);
  if (const auto s = check(c)) return s;
  if (const auto s = warm(*c.comm->clique, c.bytes)) return s;
  if (library().depth == 0) return perform(c, {c});
  library().calls.push_back(c);
  return kSuccess;
}

}  // namespace

STAND_IN_EXPORT int ncclGetVersion(int* out) {
  *out = static_cast<int>(setting("SDMA_STAND_IN_NCCL_VERSION", 22809));
  return kSuccess;
}
STAND_IN_EXPORT const char* ncclGetErrorString(int s) {
  return s == kSystemError ? "unhandled system error (run with NCCL_DEBUG=INFO for details)" : "stand-in error";
}
STAND_IN_EXPORT const char* ncclGetLastError(Comm*) { return library().last_error.c_str(); }
STAND_IN_EXPORT int ncclCommGetAsyncError(Comm* c, int* out) {
  if (!c) return kInvalidArgument;
  *out = kSuccess;
  return kSuccess;
}
STAND_IN_EXPORT int ncclGetUniqueId(Id* id) {
  std::memset(id, 0, sizeof *id);
  id->bytes[0] = ++library().last_id;
  if (!several()) return kSuccess;
  const int fd = memfd_create("stand-in NCCL", MFD_CLOEXEC);  // as long as this process lives
  if (fd < 0 || ftruncate(fd, sizeof(Hall)) != 0) return failed(kSystemError, "stand-in: no memory to meet in");
  std::snprintf(id->bytes + 1, sizeof id->bytes - 1, "/proc/%d/fd/%d", getpid(), fd);
  return kSuccess;
}
STAND_IN_EXPORT int ncclCommInitRank(Comm** out, int ranks, Id id, int rank) {
  return join(out, ranks, id, rank, false);
}
STAND_IN_EXPORT int ncclCommInitRankConfig(Comm** out, int ranks, Id id, int rank, Config* c) {
  if (c->size != sizeof *c || c->magic != 0xcafebeef || c->version < 22800)
    return failed(kInvalidArgument, "stand-in: not a configuration of NCCL 2.28");
  if (c->cta_policy != 2) return failed(kInvalidArgument, "stand-in: this configuration is for the copy engines");
  return join(out, ranks, id, rank, true);
}
STAND_IN_EXPORT int ncclGroupStart() {
  ++library().depth;
  return kSuccess;
}
STAND_IN_EXPORT int ncclGroupEnd() {
  auto& l = library();
  if (--l.depth > 0) return kSuccess;
  for (const auto* c : std::exchange(l.unfinished, {}))
    if (!c->hall && std::count(c->comms.begin(), c->comms.end(), nullptr) != 0)
      return failed(kInvalidUsage, "stand-in: a rank is missing");
  const auto group = std::exchange(l.calls, {});
  for (const auto& c : group)
    if (const auto s = perform(c, group)) return s;
  return kSuccess;
}
#define STAND_IN_SYMMETRIC(NAME, KIND)                                                                             \
  STAND_IN_EXPORT int NAME(const std::byte* from, std::byte* to, std::size_t bytes, int type, Comm* c, Stream s) { \
    return collective({KIND, from, to, bytes, type, c, s});                                                        \
  }
#define STAND_IN_ROOTED(NAME, KIND)                                                                              \
  STAND_IN_EXPORT int NAME(const std::byte* from, std::byte* to, std::size_t bytes, int type, int root, Comm* c, \
                           Stream s) {                                                                           \
    return collective({KIND, from, to, bytes, type, c, s, root});                                                \
  }
STAND_IN_SYMMETRIC(ncclAllGather, Kind::all_gather)
STAND_IN_SYMMETRIC(STAND_IN_ALL_TO_ALL, Kind::all_to_all)
STAND_IN_ROOTED(ncclBroadcast, Kind::broadcast)
STAND_IN_ROOTED(ncclScatter, Kind::scatter)
STAND_IN_ROOTED(ncclGather, Kind::gather)
STAND_IN_EXPORT int ncclSend(const std::byte* from, std::size_t bytes, int type, int peer, Comm* c, Stream s) {
  return collective({Kind::send, from, nullptr, bytes, type, c, s, peer});
}
STAND_IN_EXPORT int ncclRecv(std::byte* to, std::size_t bytes, int type, int peer, Comm* c, Stream s) {
  return collective({Kind::receive, nullptr, to, bytes, type, c, s, peer});
}
#ifdef STAND_IN_ALLOCATES
STAND_IN_EXPORT int ncclMemAlloc(void** out, std::size_t bytes) {
  return gpu::allocate(out, bytes) ? kSuccess : failed(kGpuError, "stand-in: no memory");
}
#endif
STAND_IN_EXPORT int ncclCommWindowRegister(Comm* c, std::byte* at, std::size_t bytes, void** out, int flags) {
  if (flags != 1 || library().depth == 0) return failed(kInvalidUsage, "stand-in: not a symmetric window in a group");
  if (setting("SDMA_STAND_IN_NCCL_WINDOWS", 1) == 0) return kSuccess;
  c->windows.emplace_back(at, bytes);
  *out = c;
  return kSuccess;
}
