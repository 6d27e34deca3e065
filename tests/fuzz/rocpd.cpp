// SPDX-License-Identifier: MIT
// Any bytes may be a database of rocpd: its copies come out, or an error with words, and the text stays short.
//
// An input that does not begin as a database is a list of changes to one that is right: two bytes say where, and one
// what stands there. So pages, cells and the schema are damaged one by one, which bytes by chance never reach.
#include "../../tools/recordings.hpp"

#include <sqlite3.h>

#include <cstdlib>
#include <string>

using namespace sdma;

namespace {

constexpr std::size_t kMostText = std::size_t{256} << 20;

std::string database() {
  constexpr const char* kTables = R"(
    PRAGMA page_size=512;
    CREATE TABLE rocpd_info_agent_0a (id INTEGER, guid TEXT, type TEXT, name TEXT);
    INSERT INTO rocpd_info_agent_0a VALUES (0, '0a', 'CPU', 'EPYC'), (4, '0a', 'GPU', 'gfx942');
    CREATE TABLE rocpd_track_0a (id INTEGER, pid INTEGER, stream_id INTEGER);
    INSERT INTO rocpd_track_0a VALUES (7, 41, 7), (8, 41, 8);
    CREATE TABLE rocpd_memory_copy_0a (id INTEGER, guid TEXT, start INTEGER, "end" INTEGER, src_agent_id, dst_agent_id, size,
      src_address, dst_address, track_id, event_id);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
      INSERT INTO rocpd_memory_copy_0a SELECT i, '0a', 1000 * i, 1000 * i + 500, 0, 4, 4096, 4096 * i, -4096 * i, 7 + i % 2, i FROM n;
    CREATE TABLE rocpd_memory_allocate_0a (id INTEGER, type TEXT, address, size, start, "end", agent_id);
    INSERT INTO rocpd_memory_allocate_0a VALUES (1, 'ALLOC', 20480, 65536, 1, 2, 0), (2, 'FREE', 20480, NULL, 9, 10, NULL);
    CREATE TABLE rocpd_string_0a (id INTEGER PRIMARY KEY, string TEXT);
    INSERT INTO rocpd_string_0a VALUES (1, 'MEMORY_COPY'), (2, 'MARKER_CORE_RANGE_API'), (3, 'HIP_RUNTIME_API_EXT');
    CREATE TABLE rocpd_event_0a (id INTEGER PRIMARY KEY, category_id, stack_id, extdata);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
      INSERT INTO rocpd_event_0a SELECT i, 1, 50 + i, '{}' FROM n;
    INSERT INTO rocpd_event_0a VALUES (31, 2, 31, '{"message": "forward"}'), (32, 2, 32, '{"message": "layer"}'), (33, 3, 51, '{}'),
      (34, 3, 52, '{}');
    CREATE TABLE rocpd_timestamp_0a (id INTEGER PRIMARY KEY, value INTEGER);
    INSERT INTO rocpd_timestamp_0a VALUES (1, 10), (2, 900), (3, 20), (4, 30), (5, 25), (6, 40);
    CREATE TABLE rocpd_region_0a (id INTEGER, tid INTEGER, start_id, end_id, event_id);
    INSERT INTO rocpd_region_0a VALUES (1, 71, 1, 2, 31), (2, 71, 3, 4, 32), (3, 71, 5, 6, 33), (4, 71, 6, 2, 34);)";
  sqlite3* db = nullptr;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_exec(db, kTables, nullptr, nullptr, nullptr) != SQLITE_OK)
    std::abort();
  sqlite3_int64 size = 0;
  auto* const bytes = sqlite3_serialize(db, "main", &size, 0);
  if (!bytes) std::abort();
  std::string all(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(db);
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string kWhole = database();
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.starts_with(tool::kDatabaseMark)) {
    bytes = kWhole;
    for (std::size_t i = 0; i + 2 < size; i += 3)
      bytes[(data[i] * 256u + data[i + 1]) % bytes.size()] = static_cast<char>(data[i + 2]);
  }
  for (const bool memory_alone : {false, true}) {
    const auto copies = tool::read_rocpd(bytes, "fuzz", {.generation = {}, .memory_alone = memory_alone});
    if (!copies) {
      if (copies.error().message.empty()) std::abort();
      continue;
    }
    if (size == 0 && (copies->copies.size() != 20 || copies->allocations.size() != 1)) std::abort();
    if (size == 0 && copies->copies.front().phase != "forward > layer") std::abort();
    if (copies->copies.empty() && !memory_alone) std::abort();
    for (const auto& c : copies->copies)
      if (!c.begin_ns || !c.end_ns || *c.begin_ns > *c.end_ns || c.where.empty()) std::abort();
    if (schedule_text(*copies).size() > kMostText) std::abort();
  }
  return 0;
}
