#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gdb 13.1: if gcore writes the core of a process in a container (another PID namespace) from outside, gdb lists each of
# its threads twice: with the number outside, from the note, and with the number inside, from the thread library. The
# second has no registers, so `thread apply all bt` reports an error for half of the threads. Expected: the threads of
# the notes, as eu-stack 0.188 lists them. Seen: eight for four threads.
set -euo pipefail
. "$(dirname "$0")/common.sh"

gdb_13
needs gcc unshare pgrep
cat > "$tmp/p.c" << 'C'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void* engine(void* unused) {
  for (int i = 0; i < 600; i++) usleep(100000);
  return unused;
}
int main() {
  pthread_t thread;
  for (int i = 0; i < 3; i++) pthread_create(&thread, 0, engine, 0);
  puts("ready");
  fflush(stdout);
  engine(0);
}
C
gcc -o "$tmp/p" "$tmp/p.c" -pthread
unshare --pid --fork --mount-proc "$tmp/p" > "$tmp/out" 2> "$tmp/errors" &
for _ in $(seq 100); do [[ -s $tmp/out || -s $tmp/errors ]] || sleep 0.1; done
[[ -s $tmp/out ]] || cannot "no new PID namespace: $(head -1 "$tmp/errors")"
pid=$(pgrep -P $! | head -1)
core_of "$pid"
kill -9 "$pid"
gdb "$tmp/p" "$tmp/core" -ex 'info threads' > "$tmp/threads" 2>&1 || true
grep -q 'Unable to find libthread_db' "$tmp/threads" && cannot "gdb finds no thread library"

still "from the notes" 4 "$(grep -cE '^[* ] +[0-9]+ +LWP [0-9]+ ' "$tmp/threads")"
still "again, by the numbers inside" '1 2 3 4' \
  "$(sed -nE 's/^[* ] +[0-9]+ +Thread .*\(LWP ([0-9]+)\).*/\1/p' "$tmp/threads" | sort -n | xargs)"
