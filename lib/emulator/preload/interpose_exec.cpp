// SPDX-License-Identifier: MIT
// Interposes the functions that start programs: a program that would not find the node is named on stderr, and not
// started with --require-node (leaving.hpp). Everything else is the C library's.
//
//   execve, execv, execvp, execvpe, execl, execlp, execle, fexecve, execveat    fail with EACCES
//   posix_spawn, posix_spawnp                                                    return EACCES
//   system, popen    start the shell with the environment of this process
//
// These functions run in children that share the memory of their parent (vfork), so nothing here allocates.
// Any thread may call them.
#include "../real.hpp"
#include "front.hpp"
#include "leaving.hpp"

#include <fcntl.h>
#include <paths.h>
#include <spawn.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

using sdma::emulator::refused;

#define SDMA_EXEC(name, dirfd, searched, env, parameters, ...) \
  SDMA_FRONT int name parameters { return refused(dirfd, file, searched, env) ? -1 : SDMA_REAL(name)(__VA_ARGS__); }
SDMA_EXEC(execve, AT_FDCWD, false, env, (const char* file, char* const argv[], char* const env[]) noexcept, file, argv,
          env)
SDMA_EXEC(execv, AT_FDCWD, false, environ, (const char* file, char* const argv[]) noexcept, file, argv)
SDMA_EXEC(execvp, AT_FDCWD, true, environ, (const char* file, char* const argv[]) noexcept, file, argv)
SDMA_EXEC(execvpe, AT_FDCWD, true, env, (const char* file, char* const argv[], char* const env[]) noexcept, file, argv,
          env)
SDMA_EXEC(execveat, at, false, env,
          (int at, const char* file, char* const argv[], char* const env[], int flags) noexcept, at, file, argv, env,
          flags)
SDMA_FRONT int fexecve(int fd, char* const argv[], char* const env[]) noexcept {
  return refused(fd, "", false, env) ? -1 : SDMA_REAL(fexecve)(fd, argv, env);
}

#define SDMA_SPAWN(name, searched)                                                                              \
  SDMA_FRONT int name(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,                  \
                      const posix_spawnattr_t* attributes, char* const argv[], char* const env[]) {             \
    return refused(AT_FDCWD, file, searched, env) ? errno                                                       \
                                                  : SDMA_REAL(name)(pid, file, actions, attributes, argv, env); \
  }
SDMA_SPAWN(posix_spawn, false)
SDMA_SPAWN(posix_spawnp, true)

SDMA_FRONT int system(const char* command) {
  return command && refused(AT_FDCWD, _PATH_BSHELL, false, environ) ? -1 : SDMA_REAL(system)(command);
}
SDMA_FRONT FILE* popen(const char* command, const char* mode) {
  return refused(AT_FDCWD, _PATH_BSHELL, false, environ) ? nullptr : SDMA_REAL(popen)(command, mode);
}

/// The functions with a list of arguments, whose number is counted first; `last` reads what follows them.
#define SDMA_EXEC_LIST(name, run, last)                                           \
  SDMA_FRONT int name(const char* file, const char* first, ...) noexcept {        \
    va_list list;                                                                 \
    std::size_t n = 1;                                                            \
    va_start(list, first);                                                        \
    while (va_arg(list, char*)) ++n;                                              \
    va_end(list);                                                                 \
    auto** argv = static_cast<char**>(__builtin_alloca((n + 1) * sizeof(char*))); \
    argv[0] = const_cast<char*>(first);                                           \
    va_start(list, first);                                                        \
    for (std::size_t i = 1; i <= n; ++i) argv[i] = va_arg(list, char*);           \
    char* const* env = last;                                                      \
    va_end(list);                                                                 \
    return ::run(file, argv, env);                                                \
  }
SDMA_EXEC_LIST(execl, execve, environ)
SDMA_EXEC_LIST(execlp, execvpe, environ)
SDMA_EXEC_LIST(execle, execve, va_arg(list, char* const*))
