// SPDX-License-Identifier: MIT
// Interposes the functions that lead a program past ours to those of the C library:
//
//   dlsym     where a handle, such as that of the C library itself (ctypes, JNA), leads to a function of the C library
//             that is interposed here, it returns ours
//   dlopen    RTLD_DEEPBIND (Julia) has no effect, because such a library would find the C library's functions first
//   dlmopen   gives the library a C library of its own, in which nothing is interposed: stderr names it
//   posix_spawn_file_actions_addopen   makes the C library itself open a file in the child: stderr names it
//
// The first three depend on their caller: RTLD_NEXT on its place among the libraries, a search on its RUNPATH. So they
// end in a jump to the C library's function, which finds the program's return address. Any thread may call them.
#include "../no_memory.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "paths.hpp"

#include <gnu/lib-names.h>
#include <spawn.h>
#include <atomic>
#include <cstdio>

#define SDMA_LOCAL extern "C" [[gnu::visibility("hidden")]]

/// Where the jumps lead; found by the functions that run before them.
SDMA_LOCAL decltype(&::dlsym) sdma_real_dlsym;
SDMA_LOCAL decltype(&::dlopen) sdma_real_dlopen;
SDMA_LOCAL decltype(&::dlmopen) sdma_real_dlmopen;
decltype(&::dlsym) sdma_real_dlsym = nullptr;
decltype(&::dlopen) sdma_real_dlopen = nullptr;
decltype(&::dlmopen) sdma_real_dlmopen = nullptr;

namespace {

void* base_of(const void* symbol) noexcept {
  Dl_info i{};
  return ::dladdr(symbol, &i) != 0 ? i.dli_fbase : nullptr;
}

void find_loader() noexcept {
  const auto find = [](auto& real, void* found) {
    __atomic_store_n(&real, reinterpret_cast<std::remove_reference_t<decltype(real)>>(found), __ATOMIC_RELAXED);
  };
  if (__atomic_load_n(&sdma_real_dlmopen, __ATOMIC_RELAXED)) return;
  // dlvsym is not interposed. Every C library for x86-64 has this version of dlsym.
  find(sdma_real_dlsym, ::dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  find(sdma_real_dlopen, sdma_real_dlsym(RTLD_NEXT, "dlopen"));
  find(sdma_real_dlmopen, sdma_real_dlsym(RTLD_NEXT, "dlmopen"));
}

/// The functions of this library, where the C library's lie beside them.
struct Libraries {
  void *own{}, *own_base{}, *c_base{};
  Libraries() noexcept {
    Dl_info i{};
    void* const c = sdma_real_dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    if (!c || ::dladdr(reinterpret_cast<void*>(&find_loader), &i) == 0) return;
    own = sdma_real_dlopen(i.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    own_base = i.dli_fbase;
    c_base = base_of(sdma_real_dlsym(c, "getpid"));
  }
};

}  // namespace

// What each function does before its jump. A result that is not null is returned instead of the jump.
SDMA_LOCAL void* sdma_before_dlsym(void* handle, const char* name) noexcept {
  find_loader();
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name) return nullptr;
  void* const found = sdma_real_dlsym(handle, name);
  if (!found) return nullptr;
  static const Libraries libraries;
  if (!libraries.own || base_of(found) != libraries.c_base) return found;
  void* const ours = sdma_real_dlsym(libraries.own, name);
  return base_of(ours) == libraries.own_base ? ours : found;
}
SDMA_LOCAL void* sdma_before_dlopen(const char*, int) noexcept { return find_loader(), nullptr; }
SDMA_LOCAL void* sdma_before_dlmopen(Lmid_t id, const char* file) noexcept {
  find_loader();
  static std::atomic<bool> said{false};
  if (id != LM_ID_BASE && !said.exchange(true))
    std::fprintf(stderr, "sdma emulator: dlmopen gives '%s' a C library of its own, which does not find the node\n",
                 file ? file : "");
  return nullptr;
}

#ifdef __x86_64__
/// `change`: to the arguments, before the jump. The flags are the second argument of dlopen, and the third of dlmopen.
#define SDMA_JUMP(name, change)                                                  \
  asm(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name \
      ":\n.cfi_startproc\n"                                                      \
      "endbr64\npush %rdi\npush %rsi\npush %rdx\n.cfi_adjust_cfa_offset 24\n"    \
      "call sdma_before_" #name                                                  \
      "\npop %rdx\npop %rsi\npop %rdi\n.cfi_adjust_cfa_offset -24\n"             \
      "test %rax, %rax\njne 1f\n" change "jmp *sdma_real_" #name                 \
      "(%rip)\n1: ret\n"                                                         \
      ".cfi_endproc\n.size " #name ", .-" #name "\n.popsection\n");
SDMA_JUMP(dlsym, "")
SDMA_JUMP(dlopen, "and $~8, %esi\n")  // RTLD_DEEPBIND
SDMA_JUMP(dlmopen, "and $~8, %edx\n")
static_assert(RTLD_DEEPBIND == 8);
#endif

SDMA_FRONT int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int fd, const char* path,
                                                int flags, mode_t mode) noexcept {
  using namespace sdma::emulator;
  static std::atomic<bool> said{false};
  const bool ours = guarded(false, [&] { return find_entry(AT_FDCWD, path).entry != nullptr; });
  if (ours && !said.exchange(true))
    std::fprintf(stderr,
                 "sdma emulator: posix_spawn opens '%s' inside the C library, which does not find the node's file\n",
                 path);
  return SDMA_REAL(posix_spawn_file_actions_addopen)(actions, fd, path, flags, mode);
}
