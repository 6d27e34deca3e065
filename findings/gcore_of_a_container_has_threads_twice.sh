#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gdb 13.1: in a core that gcore has written from outside a container (another PID namespace), each thread stands twice for gdb:
# once with the thread's number outside, from the note, and once with its number inside, from the thread library, for which there are
# no registers. So `thread apply all bt` reports an error for half of them, and who counts threads counts double. Expected: the
# note's threads alone, as in a core that was written inside. eu-stack 0.188 lists each once. Seen: eight for four threads.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian gdb-minimal=13.1-3 libdebuginfod1=0.188-2.1 libdebuginfod-common=0.188-2.1 libipt2=2.0.5-1 libxxhash0=0.8.1-1
needs gcc unshare pgrep
gdb=$(echo "$root"/usr/bin/gdb*)
"$gdb" --version | head -1
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
timeout 120 "$gdb" -nx -batch -p "$pid" -ex "generate-core-file $tmp/core" > "$tmp/log" 2>&1 || cannot "gdb cannot attach here"
kill -9 "$pid"
timeout 120 "$gdb" -nx -batch "$tmp/p" "$tmp/core" -ex 'info threads' > "$tmp/threads" 2>&1 || true
grep -q 'warning: Unable to find libthread_db\|Cannot find.*thread' "$tmp/threads" && cannot "gdb finds no thread library"

still "from the notes" 4 "$(grep -cE '^[* ] +[0-9]+ +LWP [0-9]+ ' "$tmp/threads")"
still "again, by the numbers inside" '1 2 3 4' "$(sed -nE 's/^[* ] +[0-9]+ +Thread .*\(LWP ([0-9]+)\).*/\1/p' "$tmp/threads" | sort -n | xargs)"
