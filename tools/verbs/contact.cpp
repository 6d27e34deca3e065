// SPDX-License-Identifier: MIT
// sdma contact: what one evening on a machine with GPUs can tell, in one file.
#include "contact/answer.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include "core/abstract_address.hpp"
#include "core/descriptor.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>

#include <sys/socket.h>

#include <filesystem>

namespace sdma::tool {
namespace {

using namespace std::chrono_literals;

struct ContactArguments {
  contact::Settings settings{};
  std::vector<std::string> paths{};
  std::string read{}, module{};
  std::vector<std::string> steps{};
  std::uint64_t minutes = 10;
  std::uint32_t gpus = 2;
  Ordering order = Ordering::strict;
  bool json = false;
};

/// A name that only one process of this node can have; it ends with the process. Empty if another one has it.
detail::Descriptor only_one() {
  detail::Descriptor s(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const detail::AbstractAddress at("sdma-contact");
  if (s && ::bind(s.get(), at.get(), at.bytes()) != 0) return detail::Descriptor();
  return s;
}

int read_verb(const ContactArguments& o) {
  const Doing opening("reading " + shown(o.read));
  const auto answer = contact::load_answer(o.read);
  if (!answer) return report(answer.error()), kInput;
  std::vector<std::pair<std::string, std::string>> schedules;
  for (const auto& path : o.paths) {
    auto text = read_text(path);
    if (!text) return report(text.error()), kInput;
    schedules.emplace_back(path, *std::move(text));
  }
  auto reading = contact::read_answer(*answer, schedules, o.read);
  if (!reading) return report(reading.error()), kInput;
  const int code = write_text("-", o.json ? json::document(reading->json) : std::move(reading->text));
  return code == kOk ? reading->code : code;
}

int contact_verb(ContactArguments& o) {
  if (!o.read.empty()) return read_verb(o);
  if (o.json) return complain("--json: only with --read", "a run writes answer.json into contact.tar.gz");
  if (o.paths.size() > 1) return complain("more than one FOLDER", "sdma contact --help");
  auto& s = o.settings;
  for (const auto& step : o.steps)
    if (step != "works" && step != "order" && step != "speed")
      return complain("--step: '" + step + "' is not works, order or speed", "sdma contact --help");
  s.only = {o.steps.begin(), o.steps.end()};
  if (!o.module.empty()) {
    auto module = read_file(o.module);
    if (!module) return report(module.error()), kInput;
    s.module = *std::move(module);
    if (const auto why = contact::no_kernels(s); !why.empty()) return complain("--module: " + why, {});
  }
  const auto folder = o.paths.empty() ? std::string("contact") : o.paths[0];
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // before ten minutes are spent
  if (error) return complain(folder + ": cannot be created: " + error.message(), "name another FOLDER"), kInput;
  const bool software = s.device == DeviceKind::soft || emulated();
  detail::Descriptor lock;
  if (!software && !(lock = only_one()))
    return complain("another sdma contact runs on this node", "wait until it has ended: both would be disturbed"),
           kInput;
  s.time = std::chrono::minutes(o.minutes);
  if (!software) s.still = 1ms;
  s.open = [&o] { return open_device(o.settings.device, {.soft = {.gpus = o.gpus, .ordering = o.order}}); };
  keep_what_is_known();
  s.stop = &interrupted;
  contact::Json answer;
  {
    Doing meeting("examining the device");
    s.progress = [&](const std::string& step, const std::string& item) {
      meeting.show([&] { return step + ": " + item; });
    };
    answer = contact::meet(s);
  }
  auto reading = contact::read_answer(answer, {});
  if (!reading) return report(reading.error()), kInput;
  const auto saved = contact::save_answer(answer, *reading, folder);
  if (saved)
    reading->text += fmt::format("{0}/contact.tar.gz is the file to send, {0}/contact.html the page to read\n", folder);
  if (const int code = write_text("-", std::move(reading->text)); code != kOk) return code;
  if (!saved) return report(saved.error()), kInput;
  if (interrupted != 0) return stopped("what is known was written, and the rest counts as not tried");
  return answer["ended"] == "no device" ? kInput : reading->code;
}

}  // namespace

void add_contact(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<ContactArguments>();
  verb.values("FOLDER", o->paths,
              "folder for contact.tar.gz and contact.html (default: contact); with --read, schedules whose proofs "
              "to check against the results of the run");
  add_device(verb, o->settings.device, "device to examine", "soft");
  add_count(verb, "--minutes", o->minutes, 1, 1000, "end after about N minutes");
  verb.flag("--gentle", o->settings.gentle, "on a shared machine: few queues, little memory, small copies");
  verb.flag("--risky", o->settings.risky,
            "also try packets whose effect is only inferred: an engine may hang, and the driver may then reset the GPU "
            "for all its users");
  verb.value("--module", o->module,
             "with --device=rocr or --device=cuda: GPU kernels that write a ring themselves "
             "(share/sdma/kernels/tiles.hip, compiled)")
      .type("FILE");
  add_texts(verb, "--step", o->steps, "only this step: works, order or speed; may be repeated").type("NAME");
  add_count(verb, "--runs", o->settings.runs, 1, 1'000'000, "maximum runs per litmus program");
  add_count(verb, "--gpus", o->gpus, 1, 8, "GPUs of the software node");
  add_choice<Ordering>(verb, "--order", o->order,
                       {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}},
                       "ordering of the software node (default: strict)");
  verb.value("--read", o->read, "print the results in the contact.tar.gz of a run, refuted rules first").type("FILE");
  verb.flag("--json", o->json, "with --read: print it as one JSON object (share/schemas/contact.json)");
  verb.exits({{kOk, "everything was tried, and nothing contradicts a rule"},
              {kRefuted, "a rule of docs/ordering.md is refuted, or something does not work"},
              {kInput, "no device, another run on this node, or an error of the input or output"},
              {kUndecided, "not everything was tried"},
              {kInterrupted, "Ctrl-C ended the run; what is known is written"}});
  verb.manual("docs/first_contact.md");
  verb.footer(
      "sdma contact lists the hardware and software, tries every packet of a user queue, runs the litmus programs,\n"
      "measures, fits a machine, and predicts collectives before it measures them. Each step runs in its own process\n"
      "with a deadline. Ctrl-C keeps the results so far. It resets nothing and needs no root.\n"
      "Examples:\n"
      "  sdma contact --device=kfd evening\n"
      "  sdma contact --device=kfd --gentle --minutes=3\n"
      "  sdma contact --read evening/contact.tar.gz\n"
      "  sdma contact --read evening/contact.tar.gz examples/schedules/*.sdma\n"
      "  sdma emulate --gpus=2 --order=adversarial -- sdma contact --device=kfd");
  action = [o] { return contact_verb(*o); };
}

}  // namespace sdma::tool
