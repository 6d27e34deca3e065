// SPDX-License-Identifier: MIT
// Reads the databases of rocpd, which rocprofv3 writes since ROCm 7.0, with SQLite3. A database may come from anywhere:
// its tables are read and never its views, whose text is a program; memory, steps and the number of rows are bounded.
#include "../lib/schedule/roctx_ranges.hpp"
#include "output.hpp"
#include "recordings.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace sdma::tool {
namespace {

constexpr sqlite3_int64 kMemory = sqlite3_int64{96} << 20;  ///< of SQLite itself; the rows need the rest of 256 MiB
constexpr std::size_t kMostRows = 200'000;
constexpr std::size_t kMostName = 256;  ///< characters of a name; a longer one ends with ".."
constexpr std::size_t kMostNames = std::size_t{64}
                                   << 20;  ///< of all rows: a page of a file may be in many places of a tree
constexpr std::size_t kMostPhases = std::size_t{16} << 20;  ///< characters of the phases of all copies
constexpr std::uint64_t kMostSteps = 4'000'000'000;         ///< of SQLite's machine; 200,000 rows take some millions

/// A database that is only read.
class Database {
 public:
  static Result<Database, Diagnostic> open(const std::string& path) {
    return opened(path.c_str(), SQLITE_OPEN_READONLY, {}, shown(path));
  }
  /// The bytes stay the caller's, who keeps them as long as the database.
  static Result<Database, Diagnostic> of(std::string_view bytes, const std::string& name) {
    return opened(":memory:", SQLITE_OPEN_READWRITE, bytes, name);
  }

  /// A row of an answer.
  struct Row {
    sqlite3_stmt* at{};
    bool known(int column) const { return sqlite3_column_type(at, column) != SQLITE_NULL; }
    std::string text(int column) const {
      const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(at, column));
      if (!t) return "";
      const auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(at, column));
      return bytes <= kMostName ? std::string(t, bytes) : std::string(t, kMostName - 2) + "..";
    }
    /// An address is a signed integer: a negative one is 2^64 more. Values of other types have no number.
    std::optional<std::uint64_t> number(int column) const {
      if (sqlite3_column_type(at, column) != SQLITE_INTEGER) return {};
      return static_cast<std::uint64_t>(sqlite3_column_int64(at, column));
    }
  };
  /// Calls `f` for each row, until it returns what is wrong.
  template <class F> Result<void, Diagnostic> each(const std::string& sql, F f) {
    sqlite3_stmt* s = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &s, nullptr) != SQLITE_OK) return wrong();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(s, sqlite3_finalize);
    Row row{s};
    std::size_t rows = 0;
    int code = sqlite3_step(s);
    for (; code == SQLITE_ROW; code = sqlite3_step(s)) {
      if (++rows > kMostRows)
        return Diagnostic{.where = name_,
                          .message = fmt::format("a table has more than {} rows", kMostRows),
                          .hint = "they would need more than 256 MiB of memory: record a shorter run"};
      if (auto error = f(row)) return Diagnostic{.where = name_, .message = *std::move(error)};
    }
    if (code != SQLITE_DONE) return wrong();
    return {};
  }
  const std::string& name() const noexcept { return name_; }

 private:
  static Result<Database, Diagnostic> opened(const char* path, int flags, std::string_view bytes, std::string name) {
    Database d;
    d.name_ = std::move(name);
    sqlite3_hard_heap_limit64(kMemory);
    sqlite3* db = nullptr;
    int code = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_PRIVATECACHE, nullptr);
    d.db_.reset(db);
    if (code == SQLITE_OK && !bytes.empty()) {
      // With READONLY, nothing is stored there.
      auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
      const auto size = static_cast<sqlite3_int64>(bytes.size());
      code = sqlite3_deserialize(db, "main", data, size, size, SQLITE_DESERIALIZE_READONLY);
    }
    if (code != SQLITE_OK) return d.wrong();
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 200);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    d.steps_ = std::make_unique<std::uint64_t>(0);
    constexpr int kStep = 10'000;
    sqlite3_progress_handler(
        db, kStep, [](void* steps) { return (*static_cast<std::uint64_t*>(steps) += kStep) > kMostSteps ? 1 : 0; },
        d.steps_.get());
    if (const auto done = d.each("PRAGMA cell_size_check=ON", [](auto&) { return std::optional<std::string>{}; });
        !done)
      return done.error();
    return d;
  }
  Diagnostic wrong() const {
    const int code = db_ ? sqlite3_errcode(db_.get()) : SQLITE_NOMEM;
    return {.where = name_,
            .message = code == SQLITE_NOMEM       ? "this database needs more than 256 MiB of memory"
                       : code == SQLITE_INTERRUPT ? "this database takes more than 4 billion steps of SQLite to read"
                                                  : fmt::format("this database cannot be read: {}",
                                                                db_ ? sqlite3_errmsg(db_.get()) : "no memory"),
            .hint = "copy it again, after the tool that wrote it has ended; or record with --output-format json"};
  }

  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  std::string name_;
  std::unique_ptr<std::uint64_t> steps_;
  std::unique_ptr<sqlite3, Close> db_;
};

/// Tables of one process or of several that were merged: each name ends in the guid of its run.
class Rocpd {
 public:
  Rocpd(Database d, const CopiesOptions& o) : d_(std::move(d)) { t_.memory_alone = o.memory_alone; }

  Result<RecordedCopies, Diagnostic> run() {
    t_.form = "a database of rocpd";
    t_.file = d_.name();
    std::vector<std::string> suffixes;
    constexpr std::string_view kCopies = "rocpd_memory_copy";
    auto found =
        d_.each("SELECT name FROM sqlite_schema WHERE type='table' AND name LIKE 'rocpd_memory_copy%' ORDER BY name",
                [&](const Database::Row& r) {
                  suffixes.push_back(r.text(0).substr(kCopies.size()));
                  return std::optional<std::string>{};
                });
    if (!found) return std::move(found.error());
    if (suffixes.empty())
      return Diagnostic{.where = d_.name(),
                        .message = "this database has no table rocpd_memory_copy",
                        .hint = "it reads the databases of rocprofv3 --memory-copy-trace (ROCm 7.0 and newer)"};
    for (const auto& s : suffixes) {
      if (s.find_first_not_of("_0123456789abcdefABCDEF") != s.npos)
        return Diagnostic{.where = d_.name(), .message = fmt::format("the table {}{} has no guid", kCopies, s)};
      several_ = suffixes.size() > 1;
      for (const auto step : {&Rocpd::agents, &Rocpd::copies, &Rocpd::phases, &Rocpd::allocations})
        if (auto done = (this->*step)(s); !done) return std::move(done.error());
    }
    if (across_ > 0)
      t_.unknown.emplace_back(
          "agents: since September 2025, HIP may name the two GPUs of a copy between GPUs the wrong way round");
    detail::RoctxRanges::say(without_call_, without_thread_, t_.unknown);
    return copies_of(std::move(t_));
  }

 private:
  using Columns = std::vector<std::string>;
  Result<Columns, Diagnostic> columns(const std::string& table) {
    Columns all;
    auto done = d_.each(fmt::format("SELECT name FROM pragma_table_info('{}')", table), [&](const Database::Row& r) {
      all.push_back(r.text(0));
      return std::optional<std::string>{};
    });
    if (!done) return std::move(done.error());
    return all;
  }
  static bool has(const Columns& all, std::string_view name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  }

  /// A table whose rows have a begin, an end and a place: in columns of their own or, in schema 4, in the tables of
  /// tracks and of times. Its rows are named x.
  class Rows {
   public:
    Rows(std::string_view table, std::string_view suffix, Columns there)
        : table_(fmt::format("{}{}", table, suffix)), suffix_(suffix), there_(std::move(there)) {}

    const std::string& table() const noexcept { return table_; }
    bool has(std::string_view name) const { return Rocpd::has(there_, name); }
    bool has_times() const { return (has("start") && has("end")) || (has("start_id") && has("end_id")); }
    /// The value of a column, or NULL.
    std::string of(std::string_view name) const {
      if (has(name)) return fmt::format("x.\"{}\"", name);
      const bool time = name == "start" || name == "end";
      if (time && has(fmt::format("{}_id", name))) return fmt::format("x_{}.value", name);
      const bool place = name == "pid" || name == "tid" || name == "stream_id" || name == "agent_id";
      return place && has("track_id") ? fmt::format("x_track.{}", name) : "NULL";
    }
    /// What follows FROM.
    std::string from() const {
      auto out = fmt::format("\"{}\" x", table_);
      if (has("track_id"))
        out += fmt::format(" LEFT JOIN \"rocpd_track{}\" x_track ON x_track.id = x.track_id", suffix_);
      for (const auto* name : {"start", "end"})
        if (!has(name) && has(fmt::format("{}_id", name)))
          out += fmt::format(" LEFT JOIN \"rocpd_timestamp{0}\" x_{1} ON x_{1}.id = x.{1}_id", suffix_, name);
      return out;
    }

   private:
    std::string table_, suffix_;
    Columns there_;
  };
  Result<Rows, Diagnostic> rows(std::string_view table, const std::string& suffix) {
    auto there = columns(fmt::format("{}{}", table, suffix));
    if (!there) return there.error();
    return Rows(table, suffix, *std::move(there));
  }

  /// The agents of one run.
  Result<void, Diagnostic> agents(const std::string& suffix) {
    agents_.clear();
    const auto table = "rocpd_info_agent" + suffix;
    const auto there = columns(table);
    if (!there) return there.error();
    if (there->empty()) return {};
    const bool named = has(*there, "name");
    return d_.each(fmt::format("SELECT id, type, {} FROM \"{}\"", named ? "name" : "NULL", table),
                   [&](const Database::Row& r) -> std::optional<std::string> {
                     const auto type = r.text(1);
                     Agent a{type == "GPU"   ? CopyRow::Side::gpu
                             : type == "CPU" ? CopyRow::Side::host
                                             : CopyRow::Side::unknown,
                             fmt::format("node {}", r.text(0))};
                     if (a.is == CopyRow::Side::gpu && r.known(2)) a.name += fmt::format(" ({})", r.text(2));
                     agents_[r.text(0)] = std::move(a);
                     return {};
                   });
  }
  struct Agent {
    CopyRow::Side is{};
    std::string name{};
  };
  void resolve(const std::string& id, CopyRow::Side& is, std::string& name) const {
    const auto a = agents_.find(id);
    if (a != agents_.end()) is = a->second.is, name = a->second.name;
    else if (!id.empty()) name = fmt::format("node {}, which the table of agents does not have", id);
  }

  Result<void, Diagnostic> copies(const std::string& suffix) {
    ranges_ = {};
    const auto x = rows("rocpd_memory_copy", suffix);
    if (!x) return x.error();
    const auto lacks = [&](const char* name) {
      return Diagnostic{.where = d_.name(), .message = fmt::format("the table {} has no column {}", x->table(), name)};
    };
    for (const auto* needed : {"id", "src_agent_id", "dst_agent_id", "size"})
      if (!x->has(needed)) return lacks(needed);
    if (!x->has_times()) return lacks("start and end");
    const auto event = columns("rocpd_event" + suffix);
    if (!event) return event.error();
    // The number of the call is in the table of events.
    const bool calls = x->has("event_id") && has(*event, "id") && has(*event, "stack_id");
    const auto sql =
        fmt::format("SELECT x.id, {}, {}, x.src_agent_id, x.dst_agent_id, x.size, {}, {}, {}, {}, {} FROM {}{}",
                    x->of("start"), x->of("end"), x->of("src_address"), x->of("dst_address"), x->of("pid"),
                    x->of("stream_id"), calls ? "e.stack_id" : "NULL", x->from(),
                    calls ? fmt::format(" LEFT JOIN \"rocpd_event{}\" e ON e.id = x.event_id", suffix) : std::string{});
    return d_.each(sql, [&](const Database::Row& r) -> std::optional<std::string> {
      if (t_.rows.size() >= kMostRows) return fmt::format("it has more than {} copies", kMostRows);
      const auto where = fmt::format("copy {}{}", r.text(0), several_ ? " of" + suffix : "");
      const auto begin = r.number(1), end = r.number(2), bytes = r.number(5);
      if (!begin || !end || *end < *begin) return where + " does not end after it begins";
      if (!bytes && r.known(5)) return where + " has a size that is not an integer";
      CopyRow c{.bytes = bytes.value_or(0),
                .source = r.number(6),
                .destination = r.number(7),
                .process = (several_ ? suffix + " " : "") + r.text(8),
                .stream = r.text(9),
                .begin_ns = *begin,
                .end_ns = *end,
                .where = where};
      // Address 0 is none: some builds write it for an address that they do not have.
      if (c.source == 0U || c.destination == 0U) c.source = c.destination = std::nullopt;
      resolve(r.text(3), c.from_is, c.from);
      resolve(r.text(4), c.to_is, c.to);
      across_ += c.from_is == CopyRow::Side::gpu && c.to_is == CopyRow::Side::gpu && c.from != c.to;
      for (const auto* name : {&c.where, &c.process, &c.stream, &c.from, &c.to}) names_ += name->size();
      if (const auto call = r.number(10)) ranges_.copy(*call, t_.rows.size());
      else ranges_.copy_without_call();
      t_.rows.push_back(std::move(c));
      return too_many_names();
    });
  }

  /// Regions of the category of markers are ranges of roctx, and others are calls. A run is of one process.
  Result<void, Diagnostic> phases(const std::string& suffix) {
    const auto x = rows("rocpd_region", suffix);
    if (!x) return x.error();
    const auto event = columns("rocpd_event" + suffix), texts = columns("rocpd_string" + suffix);
    if (!event) return event.error();
    if (!texts) return texts.error();
    if (x->of("tid") == "NULL" || !x->has_times() || !x->has("event_id") || !has(*texts, "string")) return {};
    for (const auto* needed : {"id", "category_id", "stack_id", "extdata"})
      if (!has(*event, needed)) return {};
    const auto select = [&](const std::string& what, const std::string& where) {
      return fmt::format(
          "SELECT {}, {}, {}, {} FROM {} JOIN \"rocpd_event{}\" e ON e.id = x.event_id JOIN \"rocpd_string{}\" s ON "
          "s.id = e.category_id WHERE {} LIMIT {}",
          x->of("tid"), x->of("start"), x->of("end"), what, x->from(), suffix, suffix, where, kMostRows);
    };
    if (no_phases_) return {};
    std::size_t found = 0;
    auto done = d_.each(select("CASE WHEN json_valid(e.extdata) THEN json_extract(e.extdata, '$.message') END",
                               "s.string IN ('MARKER_CORE_RANGE_API', 'MARKER_CORE_API')"),
                        [&](const Database::Row& r) -> std::optional<std::string> {
                          ++found;
                          const auto thread = r.number(0), begin = r.number(1), end = r.number(2);
                          auto name = r.text(3);
                          names_ += name.size();
                          if (thread && begin && end)
                            ranges_.range({.thread = *thread, .begin = *begin, .end = *end, .name = std::move(name)});
                          return too_many_names();
                        });
    without_thread_ += ranges_.without_thread();
    if (!done || !ranges_.any()) return done;
    if (found == kMostRows) {
      t_.unknown.push_back(
          fmt::format("phases: there are {} ranges of roctx or more, so they are not read", kMostRows));
      return {};
    }
    done = d_.each(
        select(
            "e.stack_id",
            fmt::format("s.string NOT LIKE 'MARKER%' AND e.stack_id IN (SELECT e.stack_id FROM \"rocpd_memory_copy{}\" "
                        "c JOIN \"rocpd_event{}\" e ON e.id = c.event_id)",
                        suffix, suffix)),
        [&](const Database::Row& r) -> std::optional<std::string> {
          const auto thread = r.number(0), begin = r.number(1), correlation = r.number(3);
          if (thread && begin && correlation) ranges_.call(*correlation, *thread, *begin);
          return {};
        });
    if (!done) return done;
    const auto without = ranges_.resolve([&](std::size_t copy, std::string phase) {
      phases_ += phase.size();
      t_.rows[copy].phase = std::move(phase);
      return phases_ <= kMostPhases;
    });
    ranges_ = {};
    without_call_ += without;
    no_phases_ = phases_ > kMostPhases;
    if (!no_phases_) return {};
    for (auto& r : t_.rows) r.phase = {};
    t_.unknown.push_back(
        fmt::format("phases: their names have more than {} MiB, so copies have none", kMostPhases >> 20));
    return {};
  }

  /// A free has no size: it is paired by its address.
  Result<void, Diagnostic> allocations(const std::string& suffix) {
    const auto x = rows("rocpd_memory_allocate", suffix);
    if (!x) return x.error();
    for (const auto* needed : {"type", "address", "size", "id"})
      if (!x->has(needed)) return {};
    if (!x->has_times() || x->of("agent_id") == "NULL") return {};
    const auto sql = fmt::format("SELECT x.id, x.type, x.address, x.size, {0}, {1}, {2}, {3} FROM {4} ORDER BY {0}",
                                 x->of("start"), x->of("end"), x->of("agent_id"), x->of("pid"), x->from());
    std::map<std::uint64_t, std::size_t> live;
    return d_.each(sql, [&](const Database::Row& r) -> std::optional<std::string> {
      const auto address = r.number(2);
      if (!address || *address == 0) return {};
      const auto where = fmt::format("allocation {}{}", r.text(0), several_ ? " of" + suffix : "");
      const auto type = r.text(1);
      if (type == "ALLOC") {
        CopyRow::Side is{};
        std::string name;
        resolve(r.text(6), is, name);
        live[*address] = t_.allocations.size();
        t_.allocations.push_back({.address = *address,
                                  .bytes = r.number(3).value_or(0),
                                  .process = (several_ ? suffix + " " : "") + r.text(7),
                                  .memory = name.empty() ? "memory" : "memory of " + name,
                                  .where = where,
                                  .from_ns = r.number(5)});
        const auto& a = t_.allocations.back();
        names_ += a.process.size() + a.memory.size() + a.where.size();
      } else if (const auto a = live.find(*address); type == "FREE" && a != live.end()) {
        t_.allocations[a->second].freed = where;
        t_.allocations[a->second].to_ns = r.number(4);
        live.erase(a);
      }
      return too_many_names();
    });
  }
  std::optional<std::string> too_many_names() const {
    if (names_ <= kMostNames) return {};
    return fmt::format("its names of processes, streams, agents and ranges have more than {} MiB", kMostNames >> 20);
  }

  Database d_;
  CopyTable t_;
  std::map<std::string, Agent> agents_;
  detail::RoctxRanges ranges_;  ///< of one run
  std::size_t across_ = 0, names_ = 0, phases_ = 0, without_call_ = 0, without_thread_ = 0;
  bool several_ = false, no_phases_ = false;  ///< no_phases_: they need too much memory
};

}  // namespace

Result<RecordedCopies, Diagnostic> read_rocpd(const std::string& path, const CopiesOptions& o) {
  auto d = Database::open(path);
  if (!d) return std::move(d.error());
  return Rocpd{*std::move(d), o}.run();
}
Result<RecordedCopies, Diagnostic> read_rocpd(std::string_view bytes, const std::string& name, const CopiesOptions& o) {
  auto d = Database::of(bytes, name);
  if (!d) return std::move(d.error());
  return Rocpd{*std::move(d), o}.run();
}

}  // namespace sdma::tool
