#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-user 7.2.22: robust mutexes are not robust, because set_robust_list is ENOSYS. pthread_mutexattr_setrobust
# succeeds nevertheless. If the process that holds the mutex ends, the next one to lock it waits. Expected: EOWNERDEAD,
# as without qemu. A program whose processes rely on it cannot be tested for the death of one of them. Remedy:
# pthread_mutex_timedlock. Seen: setrobust 0, lock ETIMEDOUT (110); without qemu EOWNERDEAD (130).
set -euo pipefail
. "$(dirname "$0")/common.sh"

qemu aarch64 arm64 12.2.0-14cross1
needs gcc
cat > "$tmp/r.c" << 'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  pthread_mutex_t* mutex = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  printf("setrobust %d", pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST));
  pthread_mutex_init(mutex, &kind);
  fflush(stdout);
  if (fork() == 0) {
    pthread_mutex_lock(mutex);
    _exit(0);
  }
  wait(0);
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 1;
  printf(" lock %d\n", pthread_mutex_timedlock(mutex, &limit));
}
C
cross aarch64 "$tmp/r.c" "$tmp/r"
gcc -o "$tmp/host" "$tmp/r.c" -pthread

still "qemu" 'setrobust 0 lock 110' "$("$root/usr/bin/qemu-aarch64" "$tmp/r")"
still "without qemu" 'setrobust 0 lock 130' "$("$tmp/host")"
