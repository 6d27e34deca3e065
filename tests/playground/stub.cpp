// SPDX-License-Identifier: MIT
// The program sdma for the cases of same.py: asks the page, through a socket in the folder of this program.
//
// It sends `LENGTH\n`, its folder and its words, each ended by a zero, and its input. The answer is `CODE LENGTH\n`, so
// many bytes of standard output, and standard error; or `native`, and this program becomes the one that the link
// `native` names. It is compiled, because an interpreter would need more time to start than the page needs to answer.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(254);
}

std::string read_all(int from) {
  std::string bytes;
  char block[65536];
  for (ssize_t got; (got = read(from, block, sizeof block)) != 0;) {
    if (got < 0) fail("stub: read");
    bytes.append(block, static_cast<std::size_t>(got));
  }
  return bytes;
}

void write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(to, bytes.data(), bytes.size());
    if (put < 0) fail("stub: write");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace

int main(int count, char** words) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length < 0) fail("stub: its own path");
  const std::string self{path, static_cast<std::size_t>(length)}, place = self.substr(0, self.rfind('/') + 1);
  if (!getcwd(path, sizeof path)) fail("stub: its folder");
  std::string asked = path;
  asked += '\0';
  for (int i = 1; i < count; ++i) (asked += words[i]) += '\0';

  sockaddr_un address{AF_UNIX, {}};
  std::snprintf(address.sun_path, sizeof address.sun_path, "%ssocket", place.c_str());
  const int page = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(page, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("stub: connect");
  write_all(page, std::to_string(asked.size()) + "\n" + asked + read_all(STDIN_FILENO));
  shutdown(page, SHUT_WR);
  const std::string answer = read_all(page);
  if (answer == "native\n") {
    words[0] = const_cast<char*>("sdma");
    execv((place + "native").c_str(), words);
    fail("stub: native");
  }
  char* end = nullptr;
  const long code = std::strtol(answer.c_str(), &end, 10);
  const std::size_t out = std::strtoul(end, &end, 10);
  if (*end != '\n') fail("stub: no answer");
  const std::string_view body = std::string_view{answer}.substr(static_cast<std::size_t>(end - answer.c_str()) + 1);
  write_all(STDOUT_FILENO, body.substr(0, out));
  write_all(STDERR_FILENO, body.substr(out));
  return static_cast<int>(code);
}
