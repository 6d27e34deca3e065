// SPDX-License-Identifier: MIT
#include "contact/answer.hpp"

#include "archive.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace sdma::tool::contact {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:left;border-bottom:1px solid #ccc}"
    "pre{background:#f5f5f5;padding:1em;overflow:auto}"
    ".refuted,.failed,.hung{background:#fdd}.weaker{background:#fec}.confirmed,.passed{background:#dfd}";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '<') out += "&lt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  return out;
}

/// A value of a result, as a cell has it.
std::string cell(const Json& j, const char* key) {
  const auto at = j.find(key);
  if (at == j.end()) return {};
  return escaped(at->is_string() ? at->get<std::string>() : at->dump());
}

std::string table(const Json& answer, const char* step, const char* title, std::initializer_list<const char*> columns) {
  const auto all = answer.find(step);
  if (all == answer.end()) return {};
  auto out = fmt::format("<h2>{}</h2>\n<table><tr>", title);
  for (const auto* c : columns) out += fmt::format("<th>{}</th>", c);
  out += "</tr>\n";
  for (const auto& j : *all) {
    out += fmt::format("<tr class=\"{}\">", cell(j, "state"));
    for (const auto* c : columns) out += fmt::format("<td>{}</td>", cell(j, c));
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace

std::string page_of(const Json& answer, const Reading& reading) {
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>sdma contact</title>\n"
             "<style>{}</style>\n<h1>First contact: {}</h1>\n<pre>{}</pre>\n",
             kStyle, cell(answer, "device"), escaped(reading.text)) +
         table(answer, "works", "Does it work", {"id", "state", "why", "doctor"}) +
         table(answer, "order", "What is the order", {"rule", "question", "state", "runs", "outcomes"}) +
         table(answer, "speed", "How fast",
               {"id", "state", "measured_ns", "spread_ns", "predicted_ns", "interval_ns"}) +
         table(answer, "there", "What is there", {"id", "state", "kernel", "interface", "gpus", "missing", "why"}) +
         "</html>\n";
}

Result<void, Diagnostic> save_answer(const Json& answer, const Reading& reading, const std::string& folder) {
  const auto in = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  std::vector<Member> members{{"answer.json", json::document(answer)}, {"reading.txt", reading.text}};
  std::string contents = "contents.txt  this list\n";
  std::size_t bytes = 0;
  for (const auto& m : members) {
    contents += fmt::format("{}  {} bytes\n", m.name, m.bytes.size());
    bytes += m.bytes.size();
  }
  contents +=
      "answer.json has the results of all steps: products, engines, links, versions, limits, outcomes and times. "
      "reading.txt is what sdma contact --read prints of it. No file has a name of a host or a user, or a serial number.\n";
  members.insert(members.begin(), {"contents.txt", contents});
  if (auto done = save_file(in("contact.html"), page_of(answer, reading)); !done) return done;
  if (bytes > kMostBytes)
    return Diagnostic{
        .where = in("contact.tar.gz"),
        .message = fmt::format("its files would have {} bytes, and at most {} are wanted", bytes, kMostBytes),
        .hint = "report this, and send contact.html"};
  return save_archive(in("contact.tar.gz"), members);
}

Result<Json, Diagnostic> load_answer(const std::string& file) {
  const auto bytes = read_file(file);
  if (!bytes) return bytes.error();
  const auto other = no_answer(file);
  if (!is_packed(*bytes)) return other;
  const auto members = unpack(*bytes, file);
  if (!members) return members.error();
  const auto at = std::find_if(members->begin(), members->end(), [](auto& m) { return m.name == "answer.json"; });
  if (at == members->end()) return other;
  auto answer = Json::parse(at->bytes, nullptr, false);
  if (!answer.is_object() || answer.value("form", "") != "sdma contact 1") return other;
  return answer;
}

}  // namespace sdma::tool::contact
