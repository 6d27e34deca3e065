// SPDX-License-Identifier: MIT
// What a hint says is typed into the schedule, as it stands, and then the finding is gone.
#include "checked.hpp"

#include <map>
#include <regex>
#include <sstream>

using namespace sdma;
using test::checked_whole;

namespace {

/// The finding of the rule that is between two agents, or any, where the rule has one place.
const CheckFinding* found(const CheckReport& r, std::string_view rule) {
  for (const auto& f : r.findings)
    if (f.diagnostic.rule == rule && (f.locations.size() < 2 || f.locations.front().agent != f.locations.back().agent))
      return &f;
  return nullptr;
}

/// The text with every "before line N add: X" and "after line N add: X" of the hint done. SIGNAL is a new word of the
/// host.
std::string applied(const std::string& text, const std::string& hint) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  static const std::regex kAdd(R"((before|after) line (\d+).*? add: (.*?)(, and before|, the count| \(if|$))");
  std::map<std::size_t, std::string, std::greater<>> inserts;
  std::string rest = hint;
  for (std::smatch m; std::regex_search(rest, m, kAdd);) {
    auto what = std::regex_replace(m[3].str(), std::regex("SIGNAL"), "host.extra");
    inserts[std::stoul(m[2]) - (m[1] == "before" ? 1 : 0)] = std::move(what);
    rest = m[4] == ", and before" ? "before" + m.suffix().str() : m.suffix().str();
  }
  REQUIRE_FALSE(inserts.empty());
  for (const auto& [at, what] : inserts) lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), what);
  lines.insert(lines.begin() + 2, "signal host.extra value=0");
  std::string out;
  for (const auto& l : lines) out += l + "\n";
  return out;
}

struct Case {
  const char* name;
  const char* says;  ///< a part of the hint
  const char* text;
};

// clang-format off
const Case kRaces[] = {
{"several values a round, and the same round of another queue", "func=ge reference=2*epoch-1", R"(sdma 1
gpus 3
buffer gpu*.a bytes=8K init=random
signal gpu1.have value=0
signal host.done value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=gpu1.have value=2*epoch-1
  copy_linear bytes=4K src=gpu0.a[4K] dst=gpu1.a[4K]
  fence addr=gpu1.have value=2*epoch
  atomic op=add_rtn_64 addr=host.done value=1
end
queue gpu1.q peer=gpu2
  copy_linear bytes=4K src=gpu1.a dst=gpu2.a
  poll_mem addr=gpu1.have func=ge reference=2*epoch
  copy_linear bytes=4K src=gpu1.a[4K] dst=gpu2.a[4K]
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  repeat 3
    submit *
    wait host.done >= 2*epoch
  end
end)"},
{"who reads stands first in the file", "addr=gpu0.have func=eq reference=1 (if line 7", R"(sdma 1
gpus 3
buffer gpu*.a bytes=4K init=random
signal gpu0.have value=0
signal host.done value=0
queue gpu0.out peer=gpu2
  copy_linear bytes=4K src=gpu0.a dst=gpu2.a
  atomic op=add_rtn_64 addr=host.done value=1
end
queue gpu1.in peer=gpu0
  copy_linear bytes=4K src=gpu1.a dst=gpu0.a
  fence addr=gpu0.have value=1
end
host main
  submit *
  wait host.done == 1
  wait gpu0.have == 1
end)"},
{"the next round overwrites what this one reads", "func=ge reference=epoch-1", R"(sdma 1
gpus 3
buffer gpu*.a bytes=4K
signal gpu1.have value=0
signal host.done value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=gpu1.have value=epoch
end
queue gpu1.q peer=gpu2
  poll_mem addr=gpu1.have func=ge reference=epoch
  copy_linear bytes=4K src=gpu1.a dst=gpu2.a
  fence addr=host.done value=epoch
end
host main
  repeat 3
    submit *
  end
  wait host.done >= 3
end)"},
{"a count that the one who waits takes part in", "after line 7 add: fence addr=SIGNAL value=1", R"(sdma 1
gpus 3
buffer gpu*.a bytes=4K
signal host.done value=0
signal host.other value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  atomic op=add_rtn_64 addr=host.done value=1
end
queue gpu1.q peer=gpu2
  copy_linear bytes=4K src=gpu1.a dst=gpu2.a
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 2
end)"},
{"a copy behind the fence of another", "after line 9 add: fence addr=SIGNAL value=1", R"(sdma 1
gpus 3
buffer gpu*.a bytes=8K
signal gpu1.have value=0
signal host.done value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=gpu1.have value=1
  copy_linear bytes=4K src=gpu0.a[4K] dst=gpu1.a[4K]
end
queue gpu1.q peer=gpu2
  poll_mem addr=gpu1.have func=eq reference=1
  copy_linear bytes=8K src=gpu1.a dst=gpu2.a
  fence addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
end)"},
{"a count of each round", "func=ge reference=2*epoch, the count", R"(sdma 1
gpus 3
buffer gpu*.a bytes=8K
signal host.half value=0
signal host.done value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  atomic op=add_rtn_64 addr=host.half value=1
end
queue gpu2.p peer=gpu1
  copy_linear bytes=4K src=gpu2.a dst=gpu1.a[4K]
  atomic op=add_rtn_64 addr=host.half value=1
end
queue gpu1.q peer=gpu2
  copy_linear bytes=8K src=gpu1.a dst=gpu0.a
  fence addr=host.done value=epoch
end
host main
  repeat 2
    submit *
    wait host.half >= 2*epoch
    wait host.done >= epoch
  end
end)"},
{"a host that stores while what it has submitted still reads", "before line 13 add: wait host.done == 1", R"(sdma 1
gpus 1
buffer host.table bytes=64 init=zero
buffer gpu0.seen bytes=64
signal host.entry value=0 at=host.table
signal host.done value=0
queue gpu0.p peer=host
  copy_linear bytes=64 src=host.table dst=gpu0.seen
  fence addr=host.done value=1
end
host main
  submit gpu0.p
  set host.entry = 8
  wait host.done == 1
end)"},
};
// clang-format on

}  // namespace

TEST_CASE("a race is gone when the hint is done, round for round") {
  for (const auto& c : kRaces) {
    INFO(c.name);
    auto text = std::string(c.text);
    // One edit may leave another pair; each has its own hint, and there are two at most here.
    for (int edits = 0; edits < 2; ++edits) {
      const auto r = checked_whole(text);
      const auto* f = found(r, "race");
      if (edits == 0) REQUIRE(f);
      if (!f) break;
      INFO(to_string(f->diagnostic));
      if (edits == 0) CHECK(f->diagnostic.hint.find(c.says) != std::string::npos);
      text = applied(text, f->diagnostic.hint);
    }
    INFO(text);
    const auto r = checked_whole(text);
    for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    CHECK(r.errors() == 0);
  }
}

TEST_CASE("a hint of one line and nothing else is an edit too") {
  const auto& c = kRaces[0];
  const auto r = checked_whole(c.text);
  const auto* f = found(r, "race");
  REQUIRE(f);
  REQUIRE(f->edits.size() == 1);
  const auto& edit = f->edits[0];
  CHECK(edit.kind == CheckEdit::Kind::insert);
  CHECK(edit.text.find(c.says) != std::string::npos);
  CHECK(f->diagnostic.hint.find("; before line " + std::to_string(edit.line) + " ") != std::string::npos);
  CHECK(f->diagnostic.hint.find(" add: " + edit.text) != std::string::npos);
  const auto again = applied(c.text, "before line " + std::to_string(edit.line) + " add: " + edit.text);
  CHECK(checked_whole(again).errors() == 0);
  for (const auto& other : kRaces)
    for (const auto& g : checked_whole(other.text).findings) {
      INFO(other.name << ": " << to_string(g.diagnostic));
      const auto& hint = g.diagnostic.hint;
      const bool more = hint.find("SIGNAL") != std::string::npos || hint.starts_with("move ");
      const bool one =
          hint.find(" announces it; before line ") != std::string::npos && hint.find(" [") == std::string::npos;
      CHECK(g.edits.empty() != (one && !more));
    }
}

TEST_CASE("a completion in front of its copy is moved, a count that is too low is corrected") {
  const std::string head = R"(sdma 1
gpus 3
buffer gpu*.a bytes=4K
signal gpu1.have value=0
signal host.done value=0
queue gpu0.p peer=gpu1
)",
                    copy = "  copy_linear bytes=4K src=gpu0.a dst=gpu1.a\n", fence = "  fence addr=gpu1.have value=1\n",
                    tail = R"(end
queue gpu1.q peer=gpu2
  poll_mem addr=gpu1.have func=eq reference=1
  copy_linear bytes=4K src=gpu1.a dst=gpu2.a
  atomic op=add_rtn_64 addr=host.done value=1
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done )",
                    end = "\nend\n";
  const auto early = checked_whole(head + fence + copy + tail + "== 2" + end);
  const auto* f = found(early, "race");
  REQUIRE(f);
  CHECK(f->diagnostic.hint ==
        "move line 7 after line 8; before line 12 there must be: poll_mem addr=gpu1.have func=eq "
        "reference=1");
  CHECK(checked_whole(head + copy + fence + tail + "== 2" + end).findings.empty());

  const auto low = checked_whole(head + copy + fence + tail + "== 1" + end);
  const auto* m = found(low, "missed-value");
  REQUIRE(m);
  CHECK(m->diagnostic.hint == "it ends at 2: wait for that value, or compare with >= (or <=, if it counts down)");
  const auto none = checked_whole(head + copy + fence + tail + ">= 0" + end);
  const auto* u = found(none, "unawaited");
  if (!u)
    for (const auto& x : none.findings)
      if (x.diagnostic.rule == "unawaited") u = &x;
  REQUIRE(u);
  CHECK(u->diagnostic.hint.find("waits for 0, but host.done ends at 2: wait for 2") != std::string::npos);
}

TEST_CASE("a kernel that reads what nobody has written waits for it") {
  Schedule s{.gpus = 2};
  const auto in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = 4096});
  const auto out = s.add_buffer({.place = Place::gpu(1), .name = "out", .bytes = 4096});
  const auto done = s.add_signal({.name = "done"});
  s.add_queue({.place = Place::gpu(0), .name = "q", .peer = Place::gpu(1)})
      .copy({.src = in, .dst = out, .bytes = 4096})
      .put(Fence{.addr = done, .value = 1});
  s.add_host("main").submit_all().wait(done, Compare::eq, 1);
  s.add_kernel(Place::gpu(1), "use").load({out, 4096});
  const auto r = check(s);
  const auto* f = found(r, "race");
  REQUIRE(f);
  CHECK(f->diagnostic.hint == "gpu0.q+0x1c announces it; before kernel gpu1.use step 1 add: wait host.done == 1");
}
