// SPDX-License-Identifier: MIT
#include "doctor_bounded.hpp"

#include "sdma/core/number.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace sdma::tool {
namespace {

using Clock = std::chrono::steady_clock;

/// What the child writes before each piece of a file.
struct Piece {
  std::int32_t error{};
  std::uint32_t bytes{};  ///< 0: the end of the file
};
constexpr std::size_t kMessage = std::size_t{1} << 16;

bool write_whole(int to, const void* from, std::size_t n) {
  for (const auto* at = static_cast<const char*>(from); n > 0;) {
    const auto done = ::write(to, at, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    n -= static_cast<std::size_t>(done);
  }
  return true;
}

/// The child: every file from this one on.
[[noreturn]] void serve(const std::vector<std::string>& paths, std::size_t first, std::uint64_t most, int to) {
  // A reader of this program's output does not wait for the child.
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, fd);
  std::array<char, kMessage> buffer{};
  for (auto i = first; i < paths.size(); ++i) {
    const int fd = ::open(paths[i].c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    std::uint64_t left = most + 1;
    for (ssize_t n = 1; n > 0 && left > 0;) {
      n = fd < 0 ? -1 : ::read(fd, buffer.data(), std::min<std::uint64_t>(kMessage, left));
      const Piece p{.error = n < 0 ? errno : 0, .bytes = static_cast<std::uint32_t>(std::max<ssize_t>(n, 0))};
      if (!write_whole(to, &p, sizeof p) || !write_whole(to, buffer.data(), p.bytes)) ::_exit(0);
      left -= p.bytes;
    }
    if (const Piece end{}; left == 0 && !write_whole(to, &end, sizeof end)) ::_exit(0);
    if (fd >= 0) ::close(fd);
  }
  ::_exit(0);
}

class BoundedReader {
 public:
  BoundedReader(const std::vector<std::string>& paths, const ReadBounds& bounds)
      : paths_(paths), bounds_(bounds), end_(Clock::now() + bounds.all), all_(paths.size()) {}
  ~BoundedReader() { stop(); }
  BoundedReader(const BoundedReader&) = delete;
  BoundedReader& operator=(const BoundedReader&) = delete;

  std::vector<FileRead> run() {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      auto& f = all_[i];
      if (Clock::now() >= end_)
        f.why = fmt::format("{} s were over", std::chrono::duration<double>(bounds_.all).count());
      else if (total_ >= bounds_.bytes) f.why = fmt::format("{} of other files were read", size_text(bounds_.bytes));
      else if (child_ < 0 && !start(i)) f.why = std::strerror(errno);
      else file(f);
    }
    return std::move(all_);
  }

 private:
  bool start(std::size_t first) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[0]);
      serve(paths_, first, bounds_.file_bytes, ends[1]);
    }
    ::close(ends[1]);
    if (child_ < 0) return ::close(ends[0]), false;
    from_ = ends[0];
    return true;
  }
  void stop() {
    if (child_ < 0) return;
    ::kill(child_, SIGKILL);
    ::close(from_);
    // It may wait in the kernel, and is not waited for.
    (void)::waitpid(child_, nullptr, WNOHANG);
    child_ = -1;
  }
  /// All of these bytes, unless none come for too long.
  bool receive(void* to, std::size_t n) {
    for (auto* at = static_cast<char*>(to); n > 0;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
      pollfd one{.fd = from_, .events = POLLIN, .revents = 0};
      const int ready =
          ::poll(&one, 1, static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), bounds_.each).count()));
      if (ready < 0 && errno == EINTR) continue;
      const auto got = ready > 0 ? ::read(from_, at, n) : 0;
      if (got <= 0) return false;
      at += got;
      n -= static_cast<std::size_t>(got);
    }
    return true;
  }
  void file(FileRead& f) {
    for (Piece p;;) {
      const auto had = f.bytes.size();
      if (!receive(&p, sizeof p) || p.bytes > kMessage) return lost(f);
      if (p.error != 0) f.why = std::strerror(p.error);
      if (p.bytes == 0) break;
      f.bytes.resize(had + p.bytes);
      if (!receive(f.bytes.data() + had, p.bytes)) return f.bytes.resize(had), lost(f);
    }
    if (f.bytes.size() > bounds_.file_bytes) {
      f.bytes.resize(bounds_.file_bytes);
      f.why = fmt::format("it has more than {}: only this much was taken", size_text(bounds_.file_bytes));
    }
    total_ += f.bytes.size();
  }
  void lost(FileRead& f) {
    f.why = fmt::format("it gave nothing for {} s", std::chrono::duration<double>(bounds_.each).count());
    stop();
  }

  const std::vector<std::string>& paths_;
  const ReadBounds bounds_;
  const Clock::time_point end_;
  std::vector<FileRead> all_;
  std::uint64_t total_ = 0;
  pid_t child_ = -1;
  int from_ = -1;
};

}  // namespace

std::vector<FileRead> read_bounded(const std::vector<std::string>& paths, const ReadBounds& bounds) {
  return BoundedReader{paths, bounds}.run();
}

}  // namespace sdma::tool
