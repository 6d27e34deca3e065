// A libnccl.so.2 for machines without one: the calls that collective_perf makes, as copies on the stand-in for libcuda.
//
// As strict as NCCL or stricter: communicators are made in a group of all ranks, with a configuration that has NCCL's magic;
// a communicator without kernels takes only buffers that are registered in all ranks. The first collective of a size loads a
// module, so it blocks if a stream waits. It refuses whatever NCCL would refuse.
//
//   SDMA_STAND_IN_NCCL_VERSION=22703   an older version      SDMA_STAND_IN_NCCL_FAIL=40     the 40th collective returns an error
//   SDMA_STAND_IN_NCCL_WRONG=1         rank 1 gets one byte  SDMA_STAND_IN_NCCL_HANG=40     the 40th never returns
//   SDMA_STAND_IN_NCCL_WINDOWS=0       no windows            SDMA_STAND_IN_NCCL_STUCK=40    the 40th never ends on the GPU
//                                      less than it should
#include "cuda.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace stand_in;
using abi::Pointer;
using abi::Stream;

enum Status : int { kSuccess = 0, kCudaError = 1, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5 };

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
struct Clique {
  std::vector<Comm*> comms{};
  std::set<std::size_t> warmed{};
  int ranks = 0;
};
struct Call {
  Comm* comm;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
  Stream stream;
  bool gather;
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

Status join(Comm** out, int ranks, Id id, int rank, bool copies) {
  if (library().depth == 0) return failed(kInvalidUsage, "stand-in: a single thread makes its ranks in a group");
  auto*& clique = library().cliques[id.bytes[0]];
  if (!clique) clique = new Clique;
  clique->ranks = ranks;
  clique->comms.resize(static_cast<std::size_t>(ranks));
  auto*& comm = clique->comms[static_cast<std::size_t>(rank)];
  if (comm) return failed(kInvalidUsage, "stand-in: this rank exists");
  comm = *out = new Comm{clique, rank, copies};
  library().unfinished.insert(clique);
  return kSuccess;
}

bool registered(const Comm& c, const std::byte* at, std::size_t bytes) {
  return std::any_of(c.windows.begin(), c.windows.end(),
                     [&](const auto& w) { return at >= w.first && at + bytes <= w.first + w.second; });
}

Status check(const Call& c) {
  const auto n = static_cast<std::size_t>(c.comm->clique->ranks);
  const auto whole = c.bytes * n;
  if (c.comm->copies && (!registered(*c.comm, c.from, c.gather ? c.bytes : whole) || !registered(*c.comm, c.to, whole)))
    return failed(kInvalidUsage, "stand-in: a buffer is not in a symmetric window");
  if (c.gather && c.from != c.to + c.bytes * static_cast<std::size_t>(c.comm->rank))
    return failed(kInvalidUsage, "stand-in: the all-gather is not in place");
  return kSuccess;
}

/// The first time that a size is used.
Status warm(Clique& c, std::size_t bytes) {
  if (!c.warmed.insert(bytes).second) return kSuccess;
  abi::Module m = nullptr;
  static const auto load = cuda_call<abi::Status(abi::Module*, const void*)>("cuModuleLoadData");
  return load(&m, ".version 8.0\n") == abi::kSuccess ? kSuccess : failed(kCudaError, "stand-in: no context is current");
}

Status copy(const void* to, const void* from, std::size_t bytes, Stream s) {
  static const auto enqueue = cuda_call<abi::Status(Pointer, Pointer, std::size_t, Stream)>("cuMemcpyAsync");
  return enqueue(reinterpret_cast<Pointer>(to), reinterpret_cast<Pointer>(from), bytes, s) == abi::kSuccess
             ? kSuccess
             : failed(kCudaError, "stand-in: a copy failed");
}

/// Each rank writes to all others.
Status perform(const Call& c, const std::vector<Call>& group) {
  const auto rank = static_cast<std::size_t>(c.comm->rank);
  std::size_t peers = 0;
  for (const auto& to : group) {
    if (to.comm->clique != c.comm->clique) continue;
    ++peers;
    const auto peer = static_cast<std::size_t>(to.comm->rank);
    const auto* from = c.gather ? c.from : c.from + c.bytes * peer;
    auto* at = to.to + c.bytes * rank;
    if (from == at) continue;
    const bool wrong = setting("SDMA_STAND_IN_NCCL_WRONG", 0) != 0 && peer == 1;
    if (const auto s = copy(at, from, c.bytes - wrong, c.stream)) return s;
  }
  return peers == static_cast<std::size_t>(c.comm->clique->ranks)
             ? kSuccess
             : failed(kInvalidUsage, "stand-in: a collective without all ranks hangs");
}

/// The stream waits for a word that is never written.
void stick(Stream s) {
  void* word = nullptr;
  (void)cuda_call<abi::Status(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&word, 4096, abi::kPortable);
  (void)cuda_call<abi::Status(Stream, Pointer, std::uint32_t, unsigned)>("cuStreamWaitValue32")(
      s, reinterpret_cast<Pointer>(word), 1, abi::kWaitEqual);
}

Status collective(Call c) {
  const auto number = ++library().collectives;
  if (number == setting("SDMA_STAND_IN_NCCL_FAIL", 0)) return failed(kSystemError, "stand-in: as the environment says");
  if (number == setting("SDMA_STAND_IN_NCCL_HANG", 0))
    for (;;) pause();
  if (number == setting("SDMA_STAND_IN_NCCL_STUCK", 0)) stick(c.stream);
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
    if (std::count(c->comms.begin(), c->comms.end(), nullptr) != 0)
      return failed(kInvalidUsage, "stand-in: a rank is missing");
  const auto group = std::exchange(l.calls, {});
  for (const auto& c : group)
    if (const auto s = perform(c, group)) return s;
  return kSuccess;
}
STAND_IN_EXPORT int ncclAllGather(const std::byte* from, std::byte* to, std::size_t bytes, int type, Comm* c,
                                  Stream s) {
  return type == 1 ? collective({c, from, to, bytes, s, true}) : kInvalidArgument;
}
STAND_IN_EXPORT int ncclAlltoAll(const std::byte* from, std::byte* to, std::size_t bytes, int type, Comm* c, Stream s) {
  return type == 1 ? collective({c, from, to, bytes, s, false}) : kInvalidArgument;
}
/// On the first GPU, mapped for all.
STAND_IN_EXPORT int ncclMemAlloc(void** out, std::size_t bytes) {
  const auto create =
      cuda_call<abi::Status(abi::Handle*, std::size_t, const abi::MemoryProperties*, unsigned long long)>(
          "cuMemCreate");
  const auto reserve =
      cuda_call<abi::Status(Pointer*, std::size_t, std::size_t, Pointer, unsigned long long)>("cuMemAddressReserve");
  const auto map =
      cuda_call<abi::Status(Pointer, std::size_t, std::size_t, abi::Handle, unsigned long long)>("cuMemMap");
  const auto access =
      cuda_call<abi::Status(Pointer, std::size_t, const abi::MemoryAccess*, std::size_t)>("cuMemSetAccess");
  constexpr std::size_t kUnit = 2 << 20;
  const auto size = (bytes + kUnit - 1) / kUnit * kUnit;
  int gpus = 0;
  (void)cuda_call<abi::Status(int*)>("cuDeviceGetCount")(&gpus);
  abi::MemoryProperties p;
  abi::Handle h{};
  Pointer at{};
  std::vector<abi::MemoryAccess> all(static_cast<std::size_t>(gpus));
  for (int i = 0; i < gpus; ++i) all[static_cast<std::size_t>(i)].location.id = i;
  const bool done = create(&h, size, &p, 0) == abi::kSuccess && reserve(&at, size, 0, 0, 0) == abi::kSuccess &&
                    map(at, size, 0, h, 0) == abi::kSuccess &&
                    access(at, size, all.data(), all.size()) == abi::kSuccess;
  *out = reinterpret_cast<void*>(at);
  return done ? kSuccess : failed(kCudaError, "stand-in: no memory");
}
STAND_IN_EXPORT int ncclCommWindowRegister(Comm* c, std::byte* at, std::size_t bytes, void** out, int flags) {
  if (flags != 1 || library().depth == 0) return failed(kInvalidUsage, "stand-in: not a symmetric window in a group");
  if (setting("SDMA_STAND_IN_NCCL_WINDOWS", 1) == 0) return kSuccess;
  c->windows.emplace_back(at, bytes);
  *out = c;
  return kSuccess;
}
