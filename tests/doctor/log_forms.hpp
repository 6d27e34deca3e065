// SPDX-License-Identifier: MIT
#pragma once
// Logs in the forms in which people have them: each row prints the same records as a tool does.
//
//   for (const auto& form : log_forms()) check(form.name, form.print(records));
//
// A record has its time, in microseconds since the machine started, and what is said. Forms without such a time say so.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

namespace logs {

struct Record {
  std::uint64_t us;
  std::string said;
};
using Records = std::vector<Record>;

struct LogForm {
  const char* name;
  bool seconds;  ///< it has the time since the machine started
  std::function<std::string(const Records&)> print;
};

inline double seconds(const Record& r) { return static_cast<double>(r.us) / 1e6; }
inline std::string stamp(const Record& r) { return fmt::format("[{:12.6f}] ", seconds(r)); }
inline std::string in_quotes(std::string_view s) {
  std::string out = "\"";
  for (const char c : s)
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c == '\t') out += "\\t";
    else if (c == '\n') out += "\\n";
    else out += c;
  return out + "\"";
}
inline std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) text.replace(at, what.size(), by);
  return text;
}

/// A line for each record.
template <class F> std::function<std::string(const Records&)> each(F line) {
  return [line](const Records& all) {
    std::string out;
    for (const auto& r : all) out += line(r) + "\n";
    return out;
  };
}
inline std::function<std::string(const Records&)> behind(const char* prefix) {
  return each([prefix](const Record& r) { return prefix + stamp(r) + r.said; });
}
/// What journald keeps of a record, as pairs.
inline std::vector<std::pair<std::string, std::string>> journal(const Record& r) {
  return {{"_BOOT_ID", "5e0c1d2e3b4a59687786950413223140"},
          {"_MACHINE_ID", "11112233445566778899aabbccddeeff"},
          {"PRIORITY", "3"},
          {"MESSAGE", r.said},
          {"_SOURCE_MONOTONIC_TIMESTAMP", std::to_string(r.us)},
          {"__REALTIME_TIMESTAMP", std::to_string(1790000000000000 + r.us)},
          {"_TRANSPORT", "kernel"}};
}
inline std::string journal_json(const Record& r, const char* open, const char* between, const char* close) {
  std::string out = open;
  for (const auto& [key, value] : journal(r))
    out += (out == open ? "" : between) + in_quotes(key) + " : " + in_quotes(value);
  return out + close;
}
inline std::string wrapped(const std::string& line, std::size_t width, bool at_blank) {
  std::string out, rest = line;
  while (rest.size() > width) {
    const auto cut = at_blank ? rest.rfind(' ', width) : width;
    if (cut == rest.npos || cut < 20) break;
    out += rest.substr(0, cut) + "\n";
    rest = rest.substr(at_blank ? cut + 1 : cut);
  }
  return out + rest;
}

inline const std::vector<LogForm>& log_forms() {
  static const std::vector<LogForm> forms{
      {"dmesg", true, behind("")},
      {"dmesg --raw", true, behind("<3>")},
      {"dmesg -x", true, behind("kern  :err   : ")},
      {"dmesg -t", false, each([](const Record& r) { return r.said; })},
      {"dmesg -T", false, each([](const Record& r) { return "[Sun Nov 22 10:00:01 2026] " + r.said; })},
      {"dmesg -d", true,
       each([](const Record& r) { return fmt::format("[{:12.6f} <    0.000003>] {}", seconds(r), r.said); })},
      {"dmesg --time-format iso", false,
       each([](const Record& r) { return "2026-11-22T10:00:01,402117+01:00 " + r.said; })},
      {"dmesg with callers", true,
       each([](const Record& r) { return fmt::format("[{:12.6f}][ T4711] {}", seconds(r), r.said); })},
      {"dmesg in colours", true, each([](const Record& r) {
         return fmt::format("\033[32m[{:12.6f}] \033[0m\033[33m{}\033[0m", seconds(r), r.said);
       })},
      {"dmesg --json", true,
       [](const Records& all) {
         std::string out = "{\n   \"dmesg\": [\n      {\n";
         for (const auto& r : all)
           out += fmt::format("         \"pri\": 3,\n         \"time\": {:12.6f},\n         \"msg\": {}\n      {}",
                              seconds(r), in_quotes(r.said), &r == &all.back() ? "}\n   ]\n}\n" : "},{\n");
         return out;
       }},
      {"dmesg -F FILE --json", true,
       [](const Records& all) {
         std::string out = "{\n   \"dmesg\": [\n      {\n", tail;
         std::vector<std::string> tails;
         for (auto r = all.rbegin(); r != all.rend(); ++r) {
           tails.insert(tails.begin(), r->said + tail);
           tail = fmt::format("\n<3>{}{}", stamp(*r), r->said) + tail;
         }
         for (std::size_t i = 0; i < all.size(); ++i)
           out += fmt::format("         \"pri\": 3,\n         \"time\": {:12.6f},\n         \"msg\": {}\n      {}",
                              seconds(all[i]), in_quotes(tails[i]), i + 1 == all.size() ? "}\n   ]\n}\n" : "},{\n");
         return out;
       }},
      {"/dev/kmsg", true, each([](const Record& r) {
         return fmt::format("3,{},{},-;{}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:c1:00.0", r.us % 10000, r.us,
                            replaced(r.said, "\t", "\\x09"));
       })},
      {"netconsole", true,
       each([](const Record& r) { return fmt::format("6.12.1,3,{},{},-;{}", r.us % 10000, r.us, r.said); })},
      {"netconsole in fragments", true, each([](const Record& r) {
         const auto half = r.said.size() / 2;
         return fmt::format("3,{0},{1},-,ncfrag=0/{2};{3}\n3,{0},{1},-,ncfrag={4}/{2};{5}", r.us % 10000, r.us,
                            r.said.size(), r.said.substr(0, half), half, r.said.substr(half));
       })},
      {"journalctl", false, each([](const Record& r) { return "Nov 22 10:00:01 node7 kernel: " + r.said; })},
      {"journalctl -r", false,
       [](const Records& all) {
         std::string out;
         for (auto r = all.rbegin(); r != all.rend(); ++r) out += "Nov 22 10:00:01 node7 kernel: " + r->said + "\n";
         return out;
       }},
      {"dmesg, the newest line first", true,
       [](const Records& all) {
         std::string out;
         for (auto r = all.rbegin(); r != all.rend(); ++r) out += stamp(*r) + r->said + "\n";
         return out;
       }},
      {"journalctl -o short-precise", false,
       each([](const Record& r) { return "Nov 22 10:00:01.402117 node7 kernel: " + r.said; })},
      {"journalctl -o short-iso", false,
       each([](const Record& r) { return "2026-11-22T10:00:01+0000 node7 kernel: " + r.said; })},
      {"journalctl -o short-full", false,
       each([](const Record& r) { return "Sun 2026-11-22 10:00:01 UTC node7 kernel: " + r.said; })},
      {"journalctl -o short-monotonic", true,
       each([](const Record& r) { return fmt::format("[{:12.6f}] node7 kernel: {}", seconds(r), r.said); })},
      {"journalctl -o short-unix", false,
       each([](const Record& r) { return fmt::format("1790000000.{:06} node7 kernel: {}", r.us % 1000000, r.said); })},
      {"journalctl -o export", true,
       [](const Records& all) {
         std::string out;
         for (const auto& r : all) {
           out += "__CURSOR=s=04254529df6a4093b130f6545773be69;i=1\n";
           for (const auto& [key, value] : journal(r)) out += key + "=" + value + "\n";
           out += "\n";
         }
         return out;
       }},
      {"journalctl -o export, texts as bytes", true,
       [](const Records& all) {
         std::string out;
         for (const auto& r : all) {
           for (const auto& [key, value] : journal(r)) {
             if (key != "MESSAGE") {
               out += key + "=" + value + "\n";
               continue;
             }
             out += key + "\n";
             for (unsigned shift = 0; shift < 64; shift += 8)
               out += static_cast<char>(std::uint64_t{value.size()} >> shift & 0xff);
             out += value + "\n";
           }
           out += "\n";
         }
         return out;
       }},
      {"journalctl -o verbose", true,
       [](const Records& all) {
         std::string out;
         for (const auto& r : all) {
           out += "Sun 2026-11-22 10:00:01.402117 UTC [s=04254529df6a4093b130f6545773be69;i=1;b=7b1f;m=5f]\n";
           for (const auto& [key, value] : journal(r)) out += "    " + key + "=" + value + "\n";
         }
         return out;
       }},
      {"journalctl -o json", true, each([](const Record& r) { return journal_json(r, "{", ",", "}"); })},
      {"journalctl -o json-pretty", true,
       each([](const Record& r) { return journal_json(r, "{\n\t", ",\n\t", "\n}"); })},
      {"journalctl -o json-seq", true, each([](const Record& r) { return journal_json(r, "\x1e{", ",", "}"); })},
      {"journalctl -o json-sse", true, each([](const Record& r) { return journal_json(r, "data: {", ",", "}\n"); })},
      {"journalctl -o json, texts as bytes", true, each([](const Record& r) {
         std::string bytes;
         for (const char c : r.said) bytes += fmt::format("{}{}", bytes.empty() ? "" : ", ", static_cast<int>(c));
         return fmt::format("{{\"PRIORITY\":\"3\",\"MESSAGE\":[{}],\"_SOURCE_MONOTONIC_TIMESTAMP\":\"{}\"}}", bytes,
                            r.us);
       })},
      {"rsyslog", true, each([](const Record& r) {
         return "Nov 22 10:00:01 node7 kernel: " + stamp(r) + replaced(r.said, "\t", "#011");
       })},
      {"syslog of RFC 5424", false,
       each([](const Record& r) { return "<3>1 2026-11-22T10:00:01.402117Z node7 kernel - - - " + r.said; })},
      {"Docker's files", false, each([](const Record& r) {
         return fmt::format("{{\"log\":{},\"stream\":\"stderr\",\"time\":\"2026-11-22T10:00:01.402117000Z\"}}",
                            in_quotes(r.said + "\n"));
       })},
      {"a container's runtime", true, behind("2026-11-22T10:00:01.402117000Z stdout F ")},
      {"a container's runtime, in parts", true, each([](const Record& r) {
         const std::string time = "2026-11-22T10:00:01.402117000Z stdout ", all = stamp(r) + r.said;
         return time + "P " + all.substr(0, 40) + "\n" + time + "F " + all.substr(40);
       })},
      {"kubectl logs --prefix", true, behind("[pod/watch-x7k2p/dmesg] ")},
      {"docker compose", true, behind("watch-1  | ")},
      {"grep -n", true, behind("17:")},
      {"pdsh", true, behind("node7: ")},
      {"quoted by mail", true, behind("> > ")},
      {"wrapped by mail", true,
       each([](const Record& r) { return replaced("> " + wrapped(stamp(r) + r.said, 72, true), "\n", "\n> "); })},
      {"cut by a terminal", true, each([](const Record& r) { return wrapped(stamp(r) + r.said, 80, false); })},
      {"mail in quoted-printable", true,
       [](const Records& all) {
         std::string out = "Content-Transfer-Encoding: quoted-printable\n\n";
         for (const auto& r : all) out += wrapped(replaced(stamp(r) + r.said, "=", "=3D"), 4000, false) + "\n";
         return out;
       }},
      {"a page with <br>", true,
       [](const Records& all) {
         std::string out = "<html><body>";
         for (const auto& r : all) out += replaced(replaced(stamp(r) + r.said, "<", "&lt;"), ">", "&gt;") + "<br>";
         return out + "</body></html>\n";
       }},
      {"Loki", false,
       [](const Records& all) {
         std::string out =
             "{\"status\": \"success\", \"data\": {\"resultType\": \"streams\", \"result\": [{\"stream\": {}, "
             "\"values\": [";
         for (const auto& r : all)
           out += fmt::format("{}[\"{}\", {}]", &r == all.data() ? "" : ", ", 1790000000000000000 + r.us * 1000,
                              in_quotes(r.said));
         return out + "]}]}}";
       }},
      {"Elastic", false,
       [](const Records& all) {
         std::string out = "{\"took\": 5, \"hits\": {\"hits\": [";
         for (const auto& r : all)
           out += fmt::format(
               "{}{{\"_id\": \"a0b1\", \"_source\": {{\"@timestamp\": \"2026-11-22T10:00:{:02}.{:06}Z\", "
               "\"message\": {}}}}}",
               &r == all.data() ? "" : ",\n", r.us / 1000000 % 60, r.us % 1000000, in_quotes(r.said));
         return out + "]}}\n";
       }},
      {"fluent-bit", false,
       each([](const Record& r) { return fmt::format("[1790000000.5, {{\"log\": {}}}]", in_quotes(r.said)); })},
      {"fluentd", false, each([](const Record& r) {
         return fmt::format("2026-11-22 10:00:{:02}.{:06} +0000 kernel.n7: {{\"ident\":\"kernel\",\"message\":{}}}",
                            r.us / 1000000 % 60, r.us % 1000000, in_quotes(r.said));
       })},
      {"ansible", true,
       [](const Records& all) {
         std::string lines, text;
         for (const auto& r : all) {
           lines += (lines.empty() ? "" : ", ") + in_quotes(stamp(r) + r.said);
           text += stamp(r) + r.said + "\n";
         }
         return "{\"changed\": true, \"stdout\": " + in_quotes(text) + ", \"stdout_lines\": [" + lines + "]}\n";
       }},
      {"pstore", true,
       [](const Records& all) {
         std::string out = "Panic#1 Part1\n";
         for (const auto& r : all) out += "<3>" + stamp(r) + r.said + "\n";
         return out;
       }},
      {"UTF-16", true,
       [](const Records& all) {
         std::string out;
         for (const auto& r : all)
           for (const char c : stamp(r) + r.said + "\n") (out += c) += '\0';
         return out;
       }},
      {"ends of lines of DOS", true, each([](const Record& r) { return stamp(r) + r.said + "\r"; })},
  };
  return forms;
}

}  // namespace logs
