// SPDX-License-Identifier: MIT
#pragma once
// What the handles of sdma/client.h are, and how a call answers.
//
//   return client::made([&]() -> sdma_memory* { ...; return client::refused("why", "what to do"); });
//   return client::done([&] { ...; return SDMA_OK; });
//
// Each handle keeps its device open. Both functions turn exceptions into errors of the calling thread.
#include "sdma/client.h"
#include "sdma/core/diagnostic.hpp"
#include "sdma/device/device.hpp"
#include "sdma/schedule/bind.hpp"
#include "sdma/sync/stream_order.hpp"
#include "sdma/sync/wait.hpp"

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace client {

/// What this thread's last failed call says, and what kind of failure it was: sdma_error, sdma_error_class.
struct LastError {
  std::string text{};
  int kind = SDMA_ERROR_NONE;
};
LastError& last_error() noexcept;
/// The class of a cause, and of what a hot path returned.
int kind_of(sdma::Cause) noexcept;
int kind_of(sdma::Errc) noexcept;

/// An error as a result of functions that make handles, and of the others.
struct Refused {
  template <class T> operator T*() const noexcept { return nullptr; }
  operator int() const noexcept { return code; }
  int code = SDMA_FAILED;
};
Refused refused(const sdma::Diagnostic&);
Refused refused(const std::vector<sdma::Diagnostic>&);
/// Of a call that was made wrongly, unless `kind` says otherwise.
Refused refused(std::string where, std::string message, std::string hint = "", int kind = SDMA_ERROR_ARGUMENT);
template <class Call> auto made(Call call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::invalid_argument& e) {
    return refused("sdma", e.what());
  } catch (const std::bad_alloc& e) {
    return refused("sdma", e.what(), "", SDMA_ERROR_MEMORY);
  } catch (const std::exception& e) {
    return refused("sdma", e.what(), "", SDMA_ERROR_OTHER);
  }
}
template <class Call> int done(Call call) noexcept { return made(call); }

/// "gpus=2 order=strict": the words of a setting, in order. Throws std::invalid_argument for a word without '='.
std::vector<std::pair<std::string, std::string>> settings(const char* text);
/// Throws std::invalid_argument if the value is not a number up to `most`.
std::uint64_t number(const std::pair<std::string, std::string>&, std::uint64_t most = ~0ull);

/// How long a call waits for room in a ring.
inline constexpr double kRoomSeconds = 60;
sdma::Deadline within(double seconds) noexcept;
sdma::StreamCalls calls_of(const sdma_stream&) noexcept;
/// The same with StreamCalls::copy, if the stream is one that sdma_stream_of has made of cuda or soft.
sdma::StreamCalls carrying(const sdma_stream&) noexcept;

/// Which of several processes this is.
struct Ranks {
  std::uint32_t rank = 0, ranks = 1;
  std::string session{};     ///< a folder
  std::uint64_t patience{};  ///< seconds
  std::uint32_t binds = 0;   ///< the n-th bind of each rank meets in the n-th folder of the session
};

/// A word of a host stream.
struct Word {
  sdma::Signal signal;
  const sdma::Bound* bound{};  ///< whose ranks may keep it waiting; null: there is none
};

/// A device, and the words that its host streams may write and wait for.
struct Opened {
  std::unique_ptr<sdma::Device> device;
  std::string caveat;
  Ranks ranks{};
  std::mutex mutex{};
  std::map<std::uint64_t, Word> words{};

  void know(const sdma::Signal& s, const sdma::Bound* b = nullptr) {
    const std::lock_guard lock(mutex);
    words.insert_or_assign(s.va.value, Word{s, b});
  }
  void forget(sdma::GpuVa va) {
    const std::lock_guard lock(mutex);
    words.erase(va.value);
  }
};

/// Waits for all, and for no longer once one of the queues has stopped, or a rank has ended. SDMA_OK, or an error that
/// has been reported.
int reach(const Opened&, std::span<const sdma::WaitCondition>, std::span<const sdma::Queue* const>, sdma::Deadline,
          const sdma::Bound* = nullptr);
/// A rank that has ended, as an error.
Refused lost(const std::string& where, std::string which);
/// The same for what a stream or a ring refuses; `where` is the function that was called.
Refused refused(const std::string& where, const sdma::StreamRefusal&);
Refused refused(const std::string& where, sdma::Errc, const Opened&, const sdma::Queue&);

}  // namespace client

struct sdma_device {
  std::shared_ptr<client::Opened> open;
};
struct sdma_memory {
  std::shared_ptr<client::Opened> open;
  sdma::Memory memory;
};
