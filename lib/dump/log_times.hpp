// SPDX-License-Identifier: MIT
#pragma once
// Times as logs write them. Internal.
//
//   LogCursor c{"2026-11-22T10:00:01.4+01:00 node7 kernel: "};
//   LogRecord r;
//   if (iso_date(c, r)) use(*r.date, c.rest());             // c is behind the date
//
// A date is a number of seconds of which only differences mean something: months count as in a year of 366 days, and a
// form without a year counts from 0. What does not fit leaves the cursor where it is. Pure; any thread. No errors.
#include "../core/words.hpp"
#include "log_forms.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

inline bool is_decimal(char c) noexcept { return c >= '0' && c <= '9'; }
inline bool is_gap(char c) noexcept { return c == ' ' || c == '\t'; }

/// Takes things from the beginning of a text; what does not fit leaves it as it is.
class LogCursor {
 public:
  explicit LogCursor(std::string_view text) : rest_(text) {}

  std::string_view rest() const noexcept { return rest_; }
  bool at_end() const noexcept { return rest_.empty(); }
  bool take(std::string_view words) noexcept {
    if (!rest_.starts_with(words)) return false;
    return rest_.remove_prefix(words.size()), true;
  }
  bool blanks() noexcept {
    std::size_t n = 0;
    while (n < rest_.size() && is_gap(rest_[n])) ++n;
    return rest_.remove_prefix(n), n > 0;
  }
  /// A number of `least` to `most` digits.
  std::optional<std::uint64_t> digits(std::size_t least, std::size_t most) noexcept {
    std::size_t n = 0;
    while (n < rest_.size() && is_decimal(rest_[n])) ++n;
    if (n < least || n > most) return {};
    const auto value = whole_number<std::uint64_t>(rest_.substr(0, n));
    if (value) rest_.remove_prefix(n);
    return value;
  }
  /// ".400126" or ",400126"; 0 if there is none.
  double fraction() noexcept {
    if (rest_.size() < 2 || (rest_[0] != '.' && rest_[0] != ',') || !is_decimal(rest_[1])) return 0;
    rest_.remove_prefix(1);
    double value = 0, unit = 1;
    for (; !rest_.empty() && is_decimal(rest_[0]); rest_.remove_prefix(1)) value += (unit /= 10) * (rest_[0] - '0');
    return value;
  }
  /// "Nov"
  std::optional<unsigned> month() noexcept { return one_of("JanFebMarAprMayJunJulAugSepOctNovDec"); }
  bool weekday() noexcept { return one_of("SunMonTueWedThuFriSat").has_value(); }
  /// "10:00:01.5"
  std::optional<double> clock() noexcept {
    LogCursor c = *this;
    const auto h = c.digits(2, 2);
    if (!h || !c.take(":")) return {};
    const auto m = c.digits(2, 2);
    if (!m) return {};
    double s = 0;
    if (c.take(":")) {
      const auto whole = c.digits(2, 2);
      if (!whole) return {};
      s = static_cast<double>(*whole) + c.fraction();
    }
    *this = c;
    return static_cast<double>(*h * 3600 + *m * 60) + s;
  }
  /// "2026-11-22", in days
  std::optional<double> day() noexcept {
    LogCursor c = *this;
    const auto y = c.digits(4, 4);
    if (!y || !c.take("-")) return {};
    const auto m = c.digits(2, 2);
    if (!m || !c.take("-")) return {};
    const auto d = c.digits(2, 2);
    if (!d) return {};
    *this = c;
    return days(*y, *m, *d);
  }
  static double days(std::uint64_t y, std::uint64_t m, std::uint64_t d) noexcept {
    constexpr std::array<int, 12> kBefore{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    return static_cast<double>(y * 366 + static_cast<std::uint64_t>(kBefore[(m + 11) % 12]) + d);
  }
  void word() noexcept {
    std::size_t n = 0;
    while (n < rest_.size() && !is_gap(rest_[n])) ++n;
    rest_.remove_prefix(n);
  }

 private:
  std::optional<unsigned> one_of(std::string_view names) noexcept {
    for (std::size_t i = 0; i < names.size(); i += 3)
      if (rest_.starts_with(names.substr(i, 3))) return rest_.remove_prefix(3), static_cast<unsigned>(i / 3);
    return {};
  }
  std::string_view rest_;
};

inline constexpr double kDaySeconds = 86400;

/// "812.400126", with blanks around it.
inline std::optional<double> seconds_in(std::string_view text) noexcept {
  LogCursor c{trimmed(text)};
  const auto whole = c.digits(1, 10);
  if (!whole || !c.rest().starts_with('.')) return {};
  const auto part = c.fraction();
  return c.at_end() ? std::optional(static_cast<double>(*whole) + part) : std::nullopt;
}

/// "2026-11-22T10:00:01.400126+01:00", with a blank for T, or without its zone.
inline bool iso_date(LogCursor& c, LogRecord& r) noexcept {
  LogCursor t = c;
  if (t.weekday()) t.blanks();
  const auto day = t.day();
  if (!day || !(t.take("T") || t.take(" "))) return false;
  const auto clock = t.clock();
  if (!clock) return false;
  double zone = 0;
  if (!t.take("Z") && !t.at_end() && (t.rest()[0] == '+' || t.rest()[0] == '-')) {
    const double sign = t.take("-") ? -1 : (t.take("+"), 1);
    const auto h = t.digits(2, 2);
    std::optional<std::uint64_t> m;
    if (!h) {
      const auto both = t.digits(4, 4);
      if (!both) return false;
      zone = sign * static_cast<double>(*both / 100 * 3600 + *both % 100 * 60);
    } else {
      if (t.take(":")) m = t.digits(2, 2);
      zone = sign * static_cast<double>(*h * 3600 + m.value_or(0) * 60);
    }
  }
  // "UTC", "CEST"
  LogCursor name = t;
  if (name.blanks()) {
    std::size_t n = 0;
    while (n < name.rest().size() && name.rest()[n] >= 'A' && name.rest()[n] <= 'Z') ++n;
    if (n >= 2 && n <= 5 && name.take(name.rest().substr(0, n)) && (name.at_end() || name.rest()[0] == ' ')) t = name;
  }
  r.date = *day * kDaySeconds + *clock - zone;
  c = t;
  return true;
}

/// "Nov 22 10:00:01", perhaps with a year behind it or before the clock.
inline bool syslog_date(LogCursor& c, LogRecord& r) noexcept {
  LogCursor t = c;
  if (t.weekday()) t.blanks();
  const auto month = t.month();
  if (!month) return false;
  t.blanks();
  const auto day = t.digits(1, 2);
  if (!day || !t.blanks()) return false;
  auto clock = t.clock();
  std::optional<std::uint64_t> year;
  if (!clock) {
    year = t.digits(4, 4);
    if (!year || !t.blanks()) return false;
    clock = t.clock();
    if (!clock) return false;
  }
  LogCursor behind = t;
  if (!year && behind.blanks() && (year = behind.digits(4, 4)) && (behind.at_end() || behind.rest()[0] == ' '))
    t = behind;
  else if (year && *year < 1900) year = {};
  r.date = LogCursor::days(year.value_or(0), *month + 1, *day) * kDaySeconds + *clock;
  c = t;
  return true;
}

}}}  // namespace sdma::v0_3::detail
