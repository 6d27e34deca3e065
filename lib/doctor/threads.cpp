// SPDX-License-Identifier: MIT
// Threads of another process that sleep until this process or its GPUs wake them.
#include "../core/words.hpp"
#include "../kfd/abi.hpp"
#include "process.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

using detail::take_line, detail::take_word, detail::whole_number;

/// A system call that a thread is in.
struct ThreadCall {
  std::uint64_t number{};
  std::array<std::uint64_t, 6> words{};
  std::uint64_t stack{}, instruction{};
};

/// /proc/PID/task/TID/syscall: a decimal number, then words with 0x: arguments, stack pointer, instruction. Nothing, if
/// the thread runs.
std::optional<ThreadCall> call_in(std::string_view all) {
  ThreadCall c;
  auto text = take_line(all);
  const auto number = whole_number<std::uint64_t>(take_word(text));
  if (!number) return {};
  c.number = *number;
  const auto take = [&](std::uint64_t& to) {
    const auto word = take_word(text);
    const auto value = word.starts_with("0x") ? whole_number<std::uint64_t>(word.substr(2), 16) : std::nullopt;
    to = value.value_or(0);
    return value.has_value();
  };
  for (auto& w : c.words)
    if (!take(w)) return {};
  (void)(take(c.stack) && take(c.instruction));
  return c;
}

const Mapping* mapping_of(const std::vector<Mapping>& all, std::uint64_t va) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const Mapping& m) { return va >= m.begin && va < m.end; });
  return at == all.end() ? nullptr : &*at;
}

/// What the thread waits for, if only its process or a GPU can end that; else "".
std::string sleeps_in(int pid, const ThreadCall& c, const std::vector<Mapping>& mappings, const ProcessMemory& memory) {
  constexpr std::uint64_t kWait = 0, kWaitBitset = 9, kOperation = 0x7f;
  if (c.number == SYS_futex) {
    const auto operation = c.words[1] & kOperation;
    const auto* const m = mapping_of(mappings, c.words[0]);
    const bool own = m && !m->shared;
    return (operation == kWait || operation == kWaitBitset) && c.words[3] == 0 && own ? "a wait for another thread"
                                                                                      : "";
  }
  if (c.number != SYS_ioctl ||
      static_cast<std::uint32_t>(c.words[1]) != kfd::request<kfd::WaitEvents>(kfd::Nr::wait_events))
    return {};
  std::error_code e;
  const auto file = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid, c.words[0]), e).string();
  const auto timeout = memory.value<std::uint32_t>(GpuVa{c.words[2] + offsetof(kfd::WaitEvents, timeout_ms)});
  return is_kfd(file) && timeout == ~0u ? "a wait for events of the driver" : "";
}

/// Does a call end here? On x86-64: E8 and four bytes, or FF with a register or an address.
bool follows_call(const ProcessMemory& memory, std::uint64_t va) {
  std::array<std::uint8_t, 7> code{};
  if (memory.read(GpuVa{va - code.size()}, std::as_writable_bytes(std::span(code))) != Errc::ok) return false;
  const auto indirect = [&](std::size_t bytes) {
    return code[code.size() - bytes] == 0xff && (code[code.size() - bytes + 1] >> 3 & 7) == 2;
  };
  return code[2] == 0xe8 || indirect(2) || indirect(3) || indirect(4) || indirect(6) || indirect(7);
}

std::vector<std::string> stack_of(const ThreadCall& c, const std::vector<Mapping>& mappings,
                                  const ProcessMemory& memory) {
  constexpr std::size_t kFrames = 8, kWords = 1024;
  std::vector<std::string> out;
  const auto add = [&](std::uint64_t va) {
    const auto* const m = mapping_of(mappings, va);
    if (!m || !m->executable || m->file.empty() || (!out.empty() && !follows_call(memory, va))) return;
    out.push_back(
        fmt::format("{}+{:#x}", std::filesystem::path(m->file).filename().string(), va - m->begin + m->offset));
  };
  add(c.instruction);
  for (std::size_t i = 0; i < kWords && out.size() < kFrames; ++i) {
    const auto word = memory.value<std::uint64_t>(GpuVa{c.stack + 8 * i});
    if (!word) break;
    add(*word);
  }
  return out;
}

}  // namespace

std::vector<SleepingThread> sleeping_threads(int pid, const std::vector<Mapping>& mappings,
                                             const ProcessMemory& memory) {
  std::vector<SleepingThread> all;
  std::error_code e;
  const auto tasks = fmt::format("/proc/{}/task", pid);
  for (std::filesystem::directory_iterator at(tasks, e), end; !e && at != end; at.increment(e)) {
    const auto call = read_file((at->path() / "syscall").string());
    const auto name = read_file((at->path() / "comm").string());
    const auto thread = whole_number<int>(at->path().filename().string());
    const auto in = call ? call_in(*call) : std::nullopt;
    auto sleeps = in ? sleeps_in(pid, *in, mappings, memory) : std::string();
    if (sleeps.empty() || !thread || !name) return {};
    all.push_back(
        {*thread, name->substr(0, name->find('\n')), std::move(sleeps), *call, stack_of(*in, mappings, memory)});
  }
  return e ? std::vector<SleepingThread>() : all;
}

}}}  // namespace sdma::v0_3::doctor
