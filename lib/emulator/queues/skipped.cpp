// SPDX-License-Identifier: MIT
#include "skipped.hpp"

#include "../node_options.hpp"

#include <unistd.h>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <string>

namespace sdma::emulator {
namespace {

/// The dispatches of one process. Never destroyed, because engine threads outlive the destructors at exit.
struct Table {
  const pid_t pid = ::getpid();
  std::mutex mutex{};
  std::map<std::string, std::uint64_t> names{};
  std::uint64_t all = 0;
};
std::atomic<Table*> current{nullptr};

/// The table of this process. A forked child creates its own, and never touches the parent's lock.
Table& table() {
  for (;;) {
    auto* t = current.load(std::memory_order_acquire);
    if (t && t->pid == ::getpid()) return *t;
    auto* fresh = new Table;
    if (current.compare_exchange_strong(t, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;
  }
}

void count(GpuId gpu, std::uint32_t queue, const char* name) noexcept {
  try {
    auto& t = table();
    const std::lock_guard lock(t.mutex);
    if (t.all++ == 0)
      std::fprintf(
          stderr,
          "sdma emulator: gpu %u queue %u: --kernels=skip: the dispatch of '%s' completes without effect, and so "
          "does each further dispatch that this node cannot execute; a list follows when the program ends\n",
          gpu.value, queue, name);
    ++t.names[name];
  } catch (const std::exception&) {  // counted, not named
  }
}

[[gnu::destructor]] void list() noexcept {
  auto* t = current.load(std::memory_order_acquire);
  if (!t || t->pid != ::getpid()) return;
  const std::lock_guard lock(t->mutex);
  std::fprintf(stderr, "sdma emulator: %" PRIu64 " kernel dispatch%s completed without effect:\n", t->all,
               t->all == 1 ? "" : "es");
  auto rest = t->all;
  for (const auto& [name, n] : t->names) {
    std::fprintf(stderr, "%12" PRIu64 "  %s\n", n, name.c_str());
    rest -= n;
  }
  if (rest != 0) std::fprintf(stderr, "%12" PRIu64 "  (other)\n", rest);
}

}  // namespace

bool skips_kernels() noexcept { return options().kernels == Kernels::skip; }

void skip_kernel(GpuId gpu, std::uint32_t queue, const KernelName& name, GpuVa object) noexcept {
  if (name) return count(gpu, queue, PrintableName(name).text.data());
  char text[64];
  std::snprintf(text, sizeof text, "kernel object 0x%" PRIx64, object.value);
  count(gpu, queue, text);
}

void skip_code(GpuId gpu, std::uint32_t queue, GpuVa code, AddressSpace::Reader& memory) noexcept {
  if (const auto name = kernel_at(code, memory)) return count(gpu, queue, PrintableName(name).text.data());
  char text[64];
  std::snprintf(text, sizeof text, "code at 0x%" PRIx64, code.value);
  count(gpu, queue, text);
}

PrintableName::PrintableName(const KernelName& name) noexcept {
  for (std::size_t i = 0; i < name.size; ++i) {
    const auto c = name.text[i];
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
    text[i] = plain ? c : '?';
  }
}

}  // namespace sdma::emulator
