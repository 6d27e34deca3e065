// SPDX-License-Identifier: MIT
#pragma once
// From which machine the records of a log are, and from which of its starts. Internal: log.hpp joins lines with it.
//
//   LogSources sources;
//   if (!sources.heading(line)) place = sources.add(record, text);            // in the order of the text
//   const auto found = sources.found(sources.reversed().value_or(false));
//   found.all[found.index(place)].host
//
// A record's machine is what its form names: the host of syslog, _HOSTNAME, the "host" of a record of JSON or of the
// labels around it, and what pdsh, kubectl and docker compose print before a line; or the heading above it ("==> node7
// <==", dshbak, ansible, salt, the prompt of a shell). A record without a name is of a machine that is not named, and
// of no other.
//
// Another start begins where _BOOT_ID or a line of journalctl says so, at "Linux version", and where the time since the
// start goes back. Where a date goes back, which a clock may do as well, and below a heading of Markdown or another
// command of a shell, another part of the log begins: its lines are not joined with those of before, and no other start
// is claimed.
//
// Memory in proportion to the number of machines and starts. One thread at a time. No errors.
#include "log_forms.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The first and the last of some times, as a log has them.
class LogSpan {
 public:
  void add(const LogRecord&);
  void add(const LogSpan&);
  /// "812.400", "Nov 22 10:00:01"; "" if there was no time.
  std::string first() const { return text(first_); }
  std::string last() const { return text(last_); }

 private:
  struct End {
    std::optional<double> moment{};
    std::string when{};  ///< of a clock, as the text has it
  };
  static std::string text(const End&);
  static void keep(End&, double moment, std::string_view when, bool better);

  bool seconds_ = false;  // the moments are those since the start of the machine, which count more than dates
  End first_{}, last_{};
};

/// A start of a machine, or a part of what a log has of it.
struct LogSource {
  std::string host{};      ///< "" if the log does not name it
  std::string boot{};      ///< the id of the start; "" if the log does not have it
  std::size_t start = 1;   ///< which of the machine's starts in this log it is of, in the order of time
  std::size_t starts = 1;  ///< how many the log has of the machine
  std::size_t records = 0;
  LogSpan span{};
};

/// "host node7, boot 2 of 3 (7e3d0c9a)"; "" if the log does not name the machine and has one start of it.
std::string in_words(const LogSource&);

/// Where a record stands, if the oldest line of the log is the first, and if the newest one is.
struct LogPlace {
  std::array<std::uint32_t, 2> source{};
};

struct LogSourcesFound {
  bool reversed = false;
  std::vector<LogSource> all{};     ///< in the order of the log
  std::vector<std::uint32_t> of{};  ///< which of them a place means
  std::size_t index(const LogPlace& p) const noexcept { return of[p.source[reversed ? 1 : 0]]; }
};

class LogSources {
 public:
  static bool may_be_heading(std::string_view line) noexcept;
  /// Is the line no record, but says of which machine or start the next ones are? `next`: the line after it.
  bool heading(std::string_view line, std::string_view next);
  LogPlace add(const LogRecord&, std::string_view text);
  /// Is the newest line the first? nullopt: no time says so.
  std::optional<bool> reversed() const noexcept;
  LogSourcesFound found(bool reversed) const;

 private:
  struct Host {
    std::string name{};
    bool marked = false;                      ///< it is only what stands before lines
    std::optional<double> seconds{}, date{};  ///< of its last record
  };
  /// The sources of a log, if it runs in one direction.
  struct Direction {
    struct At {
      std::uint32_t source = 0;  ///< one more than its index; 0: none yet
      std::size_t starts = 0;
      bool ended = false;  ///< the next record is of another start
      bool cut = false;    ///< the next record is of another part
    };
    struct One {
      std::uint32_t host = 0;
      std::string boot{};
      std::size_t start = 0, records = 0;
      LogSpan span{};
    };
    std::vector<At> at{};  // of each host
    std::vector<One> all{};
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t, std::less<>> by_boot{};
  };
  std::uint32_t host_of(const LogRecord&);
  std::uint32_t place(Direction&, bool back, const LogRecord&, std::uint32_t host, bool begins);
  /// What follows a heading.
  enum class Follows : std::uint8_t { section, part, start };
  bool begin(std::string_view section, std::string_view boot, Follows);
  bool is_host(const Host&) const noexcept;

  std::vector<Host> hosts_{};
  std::map<std::string, std::uint32_t, std::less<>> by_name_{};
  std::uint32_t last_host_ = 0;
  std::array<Direction, 2> directions_{};
  std::string section_{}, boot_{};  // what the last heading named
  bool rule_ = false;               // the line before was one of "----------------"
  std::string in_rules_{};          // the line after it
  std::size_t later_ = 0, earlier_ = 0;
  std::size_t marked_ = 0, marked_names_ = 0;
};

}}}  // namespace sdma::v0_3::detail
