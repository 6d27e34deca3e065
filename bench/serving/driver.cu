// SPDX-License-Identifier: MIT
// What a CUDA driver takes, which is what lib/device/cuda is built for: how many copies a stream holds, what a copy of a
// batch costs the host, whether rows are faster as copies of a batch or as one strided copy, and how soon a copy begins.
//
//   nvcc -O2 -std=c++17 driver.cu -lcuda -o driver && ./driver [first] [room] [copies] [rows] [mixture]       (no word: all)
//
// One line a measurement; times are medians of five in us. Every copy is from pinned host memory to the GPU and has its
// own place on both sides.
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

void must(CUresult r, const char* what) {
  if (r == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(r, &name);
  std::fprintf(stderr, "%s: %s\n", what, name);
  std::exit(1);
}
#define MUST(call) must(call, #call)

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

constexpr std::size_t kPool = std::size_t{1} << 30;
CUcontext context;
char* host;
CUdeviceptr device;
std::uint32_t* words;  // pinned

CUstream new_stream() {
  CUstream s{};
  MUST(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, 0));
  return s;
}
CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

struct Copies {
  std::vector<CUdeviceptr> dst, src;
  std::vector<std::size_t> bytes;
  /// `count` copies of `n` bytes, in random order on both sides.
  Copies(std::size_t count, std::size_t n) : bytes(count, n) {
    std::vector<std::size_t> a(count), b(count);
    std::iota(a.begin(), a.end(), 0);
    std::iota(b.begin(), b.end(), 0);
    std::mt19937 random(1);
    std::shuffle(a.begin(), a.end(), random);
    std::shuffle(b.begin(), b.end(), random);
    const auto stride = kPool / count;
    for (std::size_t i = 0; i < count; ++i) {
      dst.push_back(device + a[i] * stride);
      src.push_back(address(host) + b[i] * stride);
    }
  }
  void batch(std::size_t from, std::size_t n, CUstream s, const CUmemcpyAttributes& how) const {
    std::size_t first = 0;
    auto attributes = how;
    MUST(cuMemcpyBatchAsync(const_cast<CUdeviceptr*>(&dst[from]), const_cast<CUdeviceptr*>(&src[from]),
                            const_cast<std::size_t*>(&bytes[from]), n, &attributes, &first, 1, s));
  }
};

CUmemcpyAttributes how(unsigned flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE,
                       CUmemcpySrcAccessOrder order = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM) {
  CUmemcpyAttributes a{};
  a.flags = flags;
  a.srcAccessOrder = order;
  return a;
}

/// How many copies a stream that waits takes before a call blocks.
void room() {
  for (const std::size_t n : {1, 8, 16, 32, 64, 256, 1024}) {
    const Copies c(131072, 4096);
    const auto s = new_stream();
    words[0] = 0;
    MUST(cuStreamWaitValue32(s, address(words), 1, CU_STREAM_WAIT_VALUE_EQ));
    std::atomic<std::size_t> taken{0};
    std::atomic<bool> done{false};
    std::thread t([&] {
      MUST(cuCtxSetCurrent(context));
      for (std::size_t i = 0; i + n <= c.dst.size(); i += n) {
        if (n == 1) MUST(cuMemcpyAsync(c.dst[i], c.src[i], c.bytes[i], s));
        else c.batch(i, n, s, how());
        taken = i + n;
      }
      done = true;
    });
    std::size_t last = ~std::size_t{0};
    while (!done && taken != last) {
      last = taken;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    std::printf("room: batches of %4zu: %6zu copies, then a call blocks%s\n", n, taken.load(),
                done ? " (no call did)" : "");
    __atomic_store_n(&words[0], 1u, __ATOMIC_RELEASE);
    t.join();
    MUST(cuStreamSynchronize(s));
  }
}

template <class Issue> void timed(const char* name, CUstream s, std::size_t count, const Issue& issue) {
  std::vector<double> call, all;
  for (int i = 0; i < 6; ++i) {
    const auto a = now();
    issue();
    const auto b = now();
    MUST(cuStreamSynchronize(s));
    const auto c = now();
    if (i == 0) continue;
    call.push_back(b - a);
    all.push_back(c - a);
  }
  std::printf("%s: host %.3f, complete %.3f us a copy (%.2f, %.2f ms)\n", name, median(call) / count,
              median(all) / count, median(call) / 1e3, median(all) / 1e3);
}

void copies() {
  const auto s = new_stream();
  char name[120];
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{32768}}) {
    const Copies c(32768, bytes);
    for (const std::size_t n : {64, 128, 256, 512, 1024}) {
      for (const unsigned flags : {1u, 0u}) {
        std::snprintf(name, sizeof name, "copies: %zu B, batches of %4zu, flags %u", bytes, n, flags);
        timed(name, s, 32768, [&] {
          for (std::size_t i = 0; i < 32768; i += n) c.batch(i, n, s, how(flags));
        });
      }
    }
    std::snprintf(name, sizeof name, "copies: %zu B, batches of  256, sources in any order", bytes);
    timed(name, s, 32768, [&] {
      for (std::size_t i = 0; i < 32768; i += 256) c.batch(i, 256, s, how(1, CU_MEMCPY_SRC_ACCESS_ORDER_ANY));
    });
    for (const std::size_t n : {64, 256}) {
      std::snprintf(name, sizeof name, "copies: %zu B, batches of %4zu, a written value after each", bytes, n);
      timed(name, s, 32768, [&] {
        for (std::size_t i = 0; i < 32768; i += n) {
          c.batch(i, n, s, how());
          MUST(cuStreamWriteValue32(s, address(words + 16), static_cast<unsigned>(i), 0));
        }
      });
    }
    for (const std::size_t window : {512, 1024, 2048, 4096}) {
      std::snprintf(name, sizeof name, "copies: %zu B, batches of  256, at most %zu unfinished", bytes, window);
      timed(name, s, 32768, [&] {
        words[16] = 0;
        for (std::size_t i = 0; i < 32768; i += 256) {
          while (i + 256 - __atomic_load_n(&words[16], __ATOMIC_ACQUIRE) > window) {}
          c.batch(i, 256, s, how());
          MUST(cuStreamWriteValue32(s, address(words + 16), static_cast<unsigned>(i + 256), 0));
        }
      });
    }
  }
}

/// Boxes as of a KV cache: the rows of a box lie a plane apart, and the boxes at random in the planes.
struct Boxes {
  std::size_t bytes, rows, count, pitch;
  std::vector<CUdeviceptr> dst, src;
  Boxes(std::size_t row_bytes, std::size_t rows_of_each, std::size_t boxes)
      : bytes(row_bytes), rows(rows_of_each), count(boxes), pitch(kPool / rows_of_each) {
    const auto places = pitch / bytes;
    std::vector<std::size_t> a(places), b(places);
    std::iota(a.begin(), a.end(), 0);
    std::iota(b.begin(), b.end(), 0);
    std::mt19937 random(1);
    std::shuffle(a.begin(), a.end(), random);
    std::shuffle(b.begin(), b.end(), random);
    count = std::min(count, places);
    for (std::size_t i = 0; i < count; ++i) {
      dst.push_back(device + a[i] * bytes);
      src.push_back(address(host) + b[i] * bytes);
    }
  }
  void strided(std::size_t i, CUstream s) const {
    CUDA_MEMCPY2D p{};
    p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    p.srcDevice = src[i];
    p.dstDevice = dst[i];
    p.srcPitch = p.dstPitch = pitch;
    p.WidthInBytes = bytes;
    p.Height = rows;
    MUST(cuMemcpy2DAsync(&p, s));
  }
};

/// Held back, and issued in batches of 64.
struct Held {
  CUdeviceptr dst[64], src[64];
  std::size_t bytes[64], n = 0, first = 0;
  void rows(const Boxes& b, std::size_t i, CUstream s) {
    for (std::size_t r = 0; r < b.rows; ++r) {
      dst[n] = b.dst[i] + r * b.pitch;
      src[n] = b.src[i] + r * b.pitch;
      bytes[n] = b.bytes;
      if (++n == 64) send(s);
    }
  }
  void send(CUstream s) {
    auto a = how();
    if (n != 0) MUST(cuMemcpyBatchAsync(dst, src, bytes, n, &a, &first, 1, s));
    n = 0;
  }
};

/// Boxes from host memory, as rows and as strided copies: alone, and behind a wait, where the host's calls do not count.
void rows() {
  const auto s = new_stream();
  for (const std::size_t bytes : {256, 1024, 4096, 8192, 16384, 32768, 65536, 131072})
    for (const std::size_t rows : {2, 4, 8, 16, 32, 64}) {
      const Boxes b(bytes, rows, std::min<std::size_t>(4096 / rows, 400));
      std::vector<double> call[2], all[2], engine[2];
      for (int i = 0; i < 6; ++i)
        for (const int strided : {0, 1})
          for (const bool ahead : {false, true}) {
            if (ahead) {
              words[0] = 0;
              MUST(cuStreamWaitValue32(s, address(words), 1, CU_STREAM_WAIT_VALUE_EQ));
            }
            const auto begin = now();
            Held held;
            for (std::size_t k = 0; k < b.count; ++k)
              if (strided) b.strided(k, s);
              else held.rows(b, k, s);
            held.send(s);
            const auto issued = now();
            __atomic_store_n(&words[0], 1u, __ATOMIC_RELEASE);
            MUST(cuStreamSynchronize(s));
            const auto end = now();
            if (i == 0) continue;
            if (ahead) {
              engine[strided].push_back(end - issued);
            } else {
              call[strided].push_back(issued - begin);
              all[strided].push_back(end - begin);
            }
          }
      const auto per = [&](const std::vector<double>& v) { return median(v) / b.count; };
      std::printf(
          "rows: %6zu B x %2zu: batch host %6.2f engine %6.2f both %6.2f, strided host %6.2f engine %6.2f both %6.2f us a box\n",
          bytes, rows, per(call[0]), per(engine[0]), per(all[0]), per(call[1]), per(engine[1]), per(all[1]));
    }
}

/// 1 GiB in rows of 32 KiB: a share of the boxes as strided copies, the others in batches; and by what the engine has to do.
void mixture() {
  const CUstream s[] = {new_stream(), new_stream()};
  char name[120];
  std::uint32_t round = 0;
  for (const std::size_t rows : {2, 4, 8, 16, 32, 64}) {
    const Boxes b(32768, rows, 32768 / rows);
    for (const int percent : {0, 25, 35, 50, 100})
      for (const int streams : {1, 2}) {
        if (streams == 2 && percent % 100 == 0) continue;
        std::snprintf(name, sizeof name, "mixture: boxes of %2zu rows, %3d %% strided, %d stream(s)", rows, percent,
                      streams);
        timed(name, s[0], 32768, [&] {
          Held held;
          for (std::size_t k = 0; k < b.count; ++k)
            if (static_cast<int>(k * 37 % 100) < percent) b.strided(k, s[streams - 1]);
            else held.rows(b, k, s[0]);
          held.send(s[0]);
          if (streams == 2) {
            ++round;
            MUST(cuStreamWriteValue32(s[1], address(words + 8), round, 0));
            MUST(cuStreamWaitValue32(s[0], address(words + 8), round, CU_STREAM_WAIT_VALUE_EQ));
          }
        });
      }
  }
  // Where do the addresses matter to the host?
  for (const char* what : {"both at random", "destinations in order", "sources in order", "both in order"}) {
    Copies c(32768, 32768);
    if (what[0] == 'd' || what[5] == 'i') std::sort(c.dst.begin(), c.dst.end());
    if (what[0] == 's' || what[5] == 'i') std::sort(c.src.begin(), c.src.end());
    std::snprintf(name, sizeof name, "addresses: %s", what);
    timed(name, s[0], 32768, [&] {
      for (std::size_t i = 0; i < 32768; i += 64) c.batch(i, 64, s[0], how());
    });
  }
}

/// From the host's store, for which a stream waits, until the host sees the bytes of a copy behind the wait.
void first() {
  const auto s = new_stream();
  auto *go = words + 32, *seen = words + 64;
  MUST(cuMemsetD32(device, 7, 1));
  for (const int batch : {0, 1}) {
    std::vector<double> t;
    for (int i = 0; i < 1000; ++i) {
      *go = 0;
      *seen = 0;
      MUST(cuStreamWaitValue32(s, address(go), 1, CU_STREAM_WAIT_VALUE_EQ));
      if (batch) {
        auto a = how();
        CUdeviceptr d = address(seen), from = device;
        std::size_t n = 4, at = 0;
        MUST(cuMemcpyBatchAsync(&d, &from, &n, 1, &a, &at, 1, s));
      } else {
        MUST(cuMemcpyAsync(address(seen), device, 4, s));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const auto a = now();
      __atomic_store_n(go, 1u, __ATOMIC_RELEASE);
      while (__atomic_load_n(seen, __ATOMIC_ACQUIRE) != 7) {}
      t.push_back(now() - a);
      MUST(cuStreamSynchronize(s));
    }
    std::printf("first: store to the first byte of a 4-byte %s: %.2f us\n", batch ? "batch of one" : "copy", median(t));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  CUdevice d{};
  MUST(cuInit(0));
  MUST(cuDeviceGet(&d, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, d));
  MUST(cuCtxSetCurrent(context));
  void* p = nullptr;
  MUST(cuMemHostAlloc(&p, kPool + 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  host = static_cast<char*>(p);
  std::memset(host, 5, kPool + 4096);
  words = reinterpret_cast<std::uint32_t*>(host + kPool);
  MUST(cuMemAlloc(&device, kPool));
  const auto wanted = [&](const char* what) {
    return argc == 1 || std::any_of(argv + 1, argv + argc, [&](const char* a) { return std::string(a) == what; });
  };
  if (wanted("first")) first();
  if (wanted("room")) room();
  if (wanted("copies")) copies();
  if (wanted("rows")) rows();
  if (wanted("mixture")) mixture();
}
