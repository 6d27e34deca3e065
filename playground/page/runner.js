// SPDX-License-Identifier: MIT
// Runs of the program in a worker: one at a time, with a time limit. A worker that crashed or was stopped is replaced.
"use strict";

/// Base64 of gzip, as the build embeds the program.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

const kEncoder = new TextEncoder(), kDecoder = new TextDecoder();
const loaded = unpacked(document.getElementById("program").textContent).then((bytes) => WebAssembly.compile(bytes));
const workerUrl = URL.createObjectURL(new Blob([document.getElementById("worker").textContent], { type: "text/javascript" }));

class Runner {
  #worker = null;
  #current = null;
  #waiting = new Map(); // by key: a later run with the same key replaces the one that waits

  /// Answers {code, out, err, files, ms}, or {stopped: why}. `key`: of runs with the same key, only the last one matters.
  run(key, words, { input = new Uint8Array(), files = {}, limit = 10000 } = {}) {
    return new Promise((answer) => {
      this.#waiting.get(key)?.answer({ stopped: "replaced" });
      this.#waiting.set(key, { key, words, input, files, limit, answer });
      this.#next();
    });
  }
  get busy() { return this.#current !== null; }
  stop(why = "stopped") {
    if (this.#current) this.#replace(why);
  }

  #replace(why) {
    this.#worker.terminate();
    this.#worker = null;
    this.#finish({ stopped: why });
  }
  #finish(answer) {
    const job = this.#current;
    clearTimeout(job.timer);
    this.#current = null;
    job.answer({ ...answer, ms: performance.now() - job.begin });
    this.#next();
  }
  async #next() {
    if (this.#current || this.#waiting.size === 0) return;
    const [key, job] = this.#waiting.entries().next().value;
    this.#waiting.delete(key);
    this.#current = job;
    const program = await loaded;
    if (!this.#worker) {
      const worker = (this.#worker = new Worker(workerUrl));
      worker.postMessage({ program });
      worker.onmessage = ({ data }) => {
        if (worker !== this.#worker) return;
        if (data.crashed !== undefined) this.#replace("the program crashed: " + data.crashed);
        else this.#finish(data);
      };
      worker.onerror = (e) => {
        e.preventDefault();
        if (worker === this.#worker) this.#replace("the program crashed: " + e.message);
      };
    }
    job.begin = performance.now();
    job.timer = setTimeout(() => this.#replace(`stopped after ${job.limit / 1000} s`), job.limit);
    const { words, input, files } = job;
    this.#worker.postMessage({ id: key, words, input, files });
  }
}

// A proof and a prediction run at the same time.
const live = new Runner(), predicting = new Runner(), commands = new Runner();
const text = (bytes) => (bytes ? kDecoder.decode(bytes) : "");
const bytesOf = (string) => kEncoder.encode(string);
const lines = (bytes) => text(bytes).split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
const companions = Object.fromEntries(Object.entries(companionTexts).map(([name, text]) => [name, bytesOf(text)]));
