// SPDX-License-Identifier: MIT
#pragma once
// Stand-ins for libcuda with settings of their own, and the driver's objects that its tests use.
//
//   StandIn cuda({{"SDMA_STAND_IN_SEED", "7"}});   // a copy of the library: nothing that an earlier test did is left
//   Gpu gpu(cuda);                                 // device 0, its context current in this thread
//   const auto s = gpu.stream();
//
// Blocked reports whether calls that may block do so, for the thread that made it.
#include "stand_in/abi.hpp"

#include "support/catch.hpp"
#include "support/folder.hpp"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace sdma::test {

namespace cuda = sdma::detail::cuda;

/// Far longer than what a busy machine needs for any test.
inline constexpr std::chrono::seconds kLong{20};

/// meson.build says where the library is.
inline std::string stand_in_path() {
  const char* path = std::getenv("SDMA_TEST_STAND_IN");
  return path ? path : "";
}

class StandIn {
 public:
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  using Settings = std::initializer_list<std::pair<std::string, std::string>>;

  explicit StandIn(const Settings& settings = {}, bool initialise = true) {
    // Each copy is another library to the loader.
    const auto copy = folder_ / "libcuda.so.1";
    std::filesystem::copy_file(stand_in_path(), copy);
    for (const auto& [name, value] : settings) ::setenv(name.c_str(), value.c_str(), 1);
    const auto loaded = cuda::load_driver(copy);
    REQUIRE(loaded);
    driver_ = *loaded;
    if (initialise) REQUIRE(driver_->init(0) == cuda::kSuccess);
    for (const auto& [name, value] : settings) ::unsetenv(name.c_str());
    using Find = cuda::Status (*)(const char*, void**, int, std::uint64_t, int*);
    const auto find =
        reinterpret_cast<Find>(dlsym(dlopen(copy.c_str(), RTLD_NOW | RTLD_NOLOAD), "cuGetProcAddress_v2"));
    const auto take = [&](auto& to, const char* name) {
      void* at = nullptr;
      int found = 0;
      REQUIRE(find(name, &at, 12000, 0, &found) == cuda::kSuccess);
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(at);
    };
    take(stream_destroy, "cuStreamDestroy");
    take(host_free, "cuMemFreeHost");
    take(release_context, "cuDevicePrimaryCtxRelease");
    take(begin_capture, "cuStreamBeginCapture");
    take(end_capture, "cuStreamEndCapture");
    take(batch_of_words, "cuStreamBatchMemOp");
    take(instantiate, "cuGraphInstantiateWithFlags");
    take(launch_graph, "cuGraphLaunch");
    take(destroy_graph, "cuGraphDestroy");
    take(destroy_exec, "cuGraphExecDestroy");
  }

  // What the device never calls, because it may block or end what others use.
  cuda::Status (*stream_destroy)(cuda::Stream){};
  cuda::Status (*host_free)(void*){};
  cuda::Status (*release_context)(cuda::DeviceOrdinal){};

  // What the device does not use.
  using Graph = stand_in::abi::Graph;
  using GraphExec = stand_in::abi::GraphExec;
  cuda::Status (*begin_capture)(cuda::Stream, int mode){};
  cuda::Status (*end_capture)(cuda::Stream, Graph*){};
  cuda::Status (*batch_of_words)(cuda::Stream, unsigned count, const stand_in::abi::WordOperation*, unsigned flags){};
  cuda::Status (*instantiate)(GraphExec*, Graph, unsigned long long flags){};
  cuda::Status (*launch_graph)(GraphExec, cuda::Stream){};
  cuda::Status (*destroy_graph)(Graph){};
  cuda::Status (*destroy_exec)(GraphExec){};

  const cuda::Driver* operator->() const { return driver_; }

 private:
  ::test::Folder folder_;
  const cuda::Driver* driver_{};
};

class Gpu {
 public:
  static constexpr std::size_t kPage = std::size_t{2} * 1024 * 1024;

  explicit Gpu(const StandIn& c, int ordinal = 0) : driver(c), device(ordinal) {
    REQUIRE(driver->retain_context(&context, device) == cuda::kSuccess);
    REQUIRE(driver->push_context(context) == cuda::kSuccess);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() {
    (void)driver->pop_context(nullptr);
    (void)driver.release_context(device);
  }

  cuda::Stream stream() const {
    cuda::Stream s{};
    REQUIRE(driver->stream_create(&s, cuda::kNonBlocking, 0) == cuda::kSuccess);
    return s;
  }

  template <class T> T* host(std::size_t count) const {
    void* at = nullptr;
    REQUIRE(driver->host_allocate(&at, count * sizeof(T), cuda::kPortable | cuda::kDeviceMapped) == cuda::kSuccess);
    return static_cast<T*>(at);
  }

  /// Mapped for this device and those in `others`.
  cuda::Pointer memory(std::size_t bytes, std::vector<int> others = {}) const {
    cuda::MemoryProperties p;
    p.location.id = device;
    cuda::Handle h{};
    cuda::Pointer at{};
    REQUIRE(driver->memory_create(&h, bytes, &p, 0) == cuda::kSuccess);
    REQUIRE(driver->reserve(&at, bytes, 0, 0, 0) == cuda::kSuccess);
    REQUIRE(driver->map(at, bytes, 0, h, 0) == cuda::kSuccess);
    REQUIRE(driver->memory_release(h) == cuda::kSuccess);
    std::vector<cuda::MemoryAccess> access{{.location = {.id = device}}};
    for (const int other : others) access.push_back({.location = {.id = other}});
    REQUIRE(driver->set_access(at, bytes, access.data(), access.size()) == cuda::kSuccess);
    return at;
  }

  /// What a query returns once it is no longer kNotReady, or that after a long time.
  cuda::Status finish(cuda::Stream s) const {
    auto code = cuda::kNotReady;
    for (const auto start = std::chrono::steady_clock::now();
         code == cuda::kNotReady && std::chrono::steady_clock::now() - start < kLong;
         std::this_thread::sleep_for(std::chrono::microseconds(50)))
      code = driver->stream_query(s);
    return code;
  }

  const StandIn& driver;
  const int device;
  cuda::Context context{};
};

inline cuda::Pointer address(const void* at) { return reinterpret_cast<cuda::Pointer>(at); }

inline void store(std::uint32_t* word, std::uint32_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}
inline std::uint32_t load(std::uint32_t* word) { return std::atomic_ref(*word).load(std::memory_order_acquire); }

/// A call in a thread of its own, with the GPU's context.
class Blocked {
 public:
  template <class Call> Blocked(const Gpu& gpu, Call call) : gpu_(gpu) {
    thread_ = std::thread([this, call] {
      (void)gpu_.driver->push_context(gpu_.context);
      code_ = call();
      returned_ = true;
    });
  }
  ~Blocked() {
    // After a failure, nothing may ever let the call go on. Contexts that end do.
    if (code() == -1)
      for (const int d : {0, 1}) (void)gpu_.driver.release_context(d);
    thread_.join();
  }

  /// Is it still in the call after a while?
  bool blocks() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return !returned_;
  }
  /// What the call returned; -1: nothing in a long time.
  cuda::Status code() const {
    for (const auto start = std::chrono::steady_clock::now();
         !returned_ && std::chrono::steady_clock::now() - start < kLong;
         std::this_thread::sleep_for(std::chrono::microseconds(50))) {}
    return code_;
  }

 private:
  const Gpu& gpu_;
  std::atomic<cuda::Status> code_ = -1;
  std::atomic<bool> returned_ = false;
  std::thread thread_;
};

}  // namespace sdma::test
