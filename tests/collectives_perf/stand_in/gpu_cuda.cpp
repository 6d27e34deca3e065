// SPDX-License-Identifier: MIT
// The stand-in for libcuda.
#include "cuda.hpp"
#include "gpu.hpp"

#include <vector>

namespace stand_in::gpu {

using abi::Pointer;

bool load() {
  abi::Module m = nullptr;
  static const auto load = cuda_call<abi::Status(abi::Module*, const void*)>("cuModuleLoadData");
  return load(&m, ".version 8.0\n") == abi::kSuccess;
}

bool copy(void* to, const void* from, std::size_t bytes, Stream s) {
  static const auto enqueue = cuda_call<abi::Status(Pointer, Pointer, std::size_t, Stream)>("cuMemcpyAsync");
  return enqueue(reinterpret_cast<Pointer>(to), reinterpret_cast<Pointer>(from), bytes, s) == abi::kSuccess;
}

void stick(Stream s) {
  void* word = nullptr;
  (void)cuda_call<abi::Status(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&word, 4096, abi::kPortable);
  (void)cuda_call<abi::Status(Stream, Pointer, std::uint32_t, unsigned)>("cuStreamWaitValue32")(
      s, reinterpret_cast<Pointer>(word), 1, abi::kWaitEqual);
}

bool pin(void* at, std::size_t bytes) {
  static const auto call = cuda_call<abi::Status(void*, std::size_t, unsigned)>("cuMemHostRegister");
  return call(at, bytes, abi::kPortable | abi::kDeviceMapped) == abi::kSuccess;
}

bool write(std::uint32_t* word, std::uint32_t value, Stream s) {
  static const auto call = cuda_call<abi::Status(Stream, Pointer, std::uint32_t, unsigned)>("cuStreamWriteValue32");
  return call(s, reinterpret_cast<Pointer>(word), value, 0) == abi::kSuccess;
}

bool wait(std::uint32_t* word, std::uint32_t value, Stream s) {
  static const auto call = cuda_call<abi::Status(Stream, Pointer, std::uint32_t, unsigned)>("cuStreamWaitValue32");
  return call(s, reinterpret_cast<Pointer>(word), value, abi::kWaitGreaterOrEqual) == abi::kSuccess;
}

/// On the first GPU.
bool allocate(void** out, std::size_t bytes) {
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
  return done;
}

}  // namespace stand_in::gpu
