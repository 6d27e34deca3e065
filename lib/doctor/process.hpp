// SPDX-License-Identifier: MIT
#pragma once
// What /proc shows of another process: its mappings, its memory, its tracer. Internal.
//
//   ProcessMemory memory(4711);
//   memory.read(GpuVa{0x7f0000001000}, bytes);     // Errc::unmapped: not mapped, a doorbell, or the process has ended
//
// Any thread may use an object. Nothing here stops the process.
#include "sdma/core/units.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

struct Mapping {
  std::uint64_t begin{}, end{};
  bool readable{};
  bool shared{};           ///< other processes may have it, too
  std::string file{};      ///< "" without one
  std::string object{};    ///< if it is shared: device and inode of the file
  std::uint64_t offset{};  ///< in the file
  bool executable{};
};
/// Empty if the process has ended or may not be examined.
std::vector<Mapping> mappings_of(int pid);

/// Whether a name in /proc/PID/maps or /proc/PID/fd is that of /dev/kfd, of the driver or of the software node.
bool is_kfd(const std::string& file) noexcept;
bool is_software_kfd(const std::string& file) noexcept;

/// The ranges of a snapshot, in the order of their addresses.
std::vector<Range> ranges_of(const std::vector<Mapping>&);

class ProcessMemory {
 public:
  /// `doorbells`: ranges that are never read.
  ProcessMemory(int pid, const std::vector<Mapping>& doorbells);
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;
  /// Whether the process may be read at all.
  bool open() const noexcept { return fd_ >= 0; }
  /// All bytes, or none.
  Errc read(GpuVa, std::span<std::byte> out) const noexcept;
  /// The value at an address; nothing if it cannot be read.
  template <class T> std::optional<T> value(GpuVa va) const noexcept {
    T v{};
    if (read(va, std::as_writable_bytes(std::span(&v, 1))) != Errc::ok) return std::nullopt;
    return v;
  }

 private:
  int fd_ = -1;
  std::vector<Mapping> doorbells_{};
};

/// The value of "Name:" in /proc/PID/status; "" if there is none.
std::string status_of(int pid, std::string_view name);
/// When a process began, in seconds of the clock of the kernel's log; nothing if it has ended. Never later than it was.
std::optional<double> start_of(int pid);
/// A thread that sleeps until another thread of its process, or an event of a GPU, wakes it.
struct SleepingThread {
  int thread{};
  std::string name{};
  std::string in{};    ///< "a wait for events of the driver"
  std::string call{};  ///< its system call, as /proc shows it: the same at two looks, if it has not moved
  /// Where it is, and what look like return addresses on its stack, the innermost first: "libc.so.6+0x89e96". Offsets
  /// are those in the file. A word that a finished call has left may be among them. Empty if it cannot be read.
  std::vector<std::string> stack{};
};
/// All threads of a process, if each of them sleeps so, without an end of time; otherwise none.
std::vector<SleepingThread> sleeping_threads(int pid, const std::vector<Mapping>&, const ProcessMemory&);
/// A thread that does not run and does not wait for anything of its program.
struct HeldThread {
  int thread{};
  std::string name{};
  char state{};      ///< as /proc shows it: T stopped, t stopped by a debugger, Z a zombie, D in the kernel
  std::string in{};  ///< of D: the kernel's function, if it can be read
  friend bool operator==(const HeldThread&, const HeldThread&) = default;
};
/// Those of a process.
std::vector<HeldThread> held_threads(int pid);
/// What is held, why, and what ends it: a sentence of each state. `threads`: all of the process.
std::vector<std::string> sentences_of(const std::vector<HeldThread>&, int pid, std::size_t threads);
/// How many threads a process has.
std::size_t count_threads(int pid);
/// What may store to the memory of a process though all its threads sleep: "a timer", "a handler of the signals 10,
/// 12", "2 sockets". Signals that only a thread's own instruction raises do not count, nor those of libc.
std::vector<std::string> sleepless_parts(int pid);
/// The thread that traces a process; 0: none.
int tracer_of(int pid);

}}}  // namespace sdma::v0_3::doctor
