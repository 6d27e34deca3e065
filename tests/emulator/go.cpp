// SPDX-License-Identifier: MIT
// A program that carries the note of Go's linker, and opens a device by the instruction of a system call.
//
//   emulator-go          exit code 0: the device was opened; 1: it was not, as on a machine that has none
#include <fcntl.h>
#include <sys/syscall.h>

// Name and description, each of 4 bytes; type 4 is the identity of the build.
asm(".pushsection .note.go.buildid,\"a\",@note\n"
    ".long 4, 4, 4\n"
    ".ascii \"Go\\0\\0id01\"\n"
    ".popsection");

int main() {
  long result = SYS_openat;
  asm volatile("movq %1, %%rdi; movq %2, %%rsi; movq %3, %%rdx; xorq %%r10, %%r10; syscall"
               : "+a"(result)
               : "i"(AT_FDCWD), "r"("/dev/kfd"), "i"(O_RDWR)
               : "rdi", "rsi", "rdx", "r10", "rcx", "r11", "memory");
  return result < 0 ? 1 : 0;
}
