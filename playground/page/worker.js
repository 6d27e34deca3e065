// SPDX-License-Identifier: MIT
// Runs the program sdma once per message, in an instance of its own, so that no run sees what another left in memory.
//
//   {program: WebAssembly.Module}                                    once, first
//   {id, words: [...], input: Uint8Array, files: {name: Uint8Array}}  answered by {id, code, out, err, files}
//
// `files` of the answer are the files that the run created or changed, without those that it left as they were.
"use strict";
const kFolder = "/work";
let program, next;

/// An instance that has run nothing yet.
const instance = () => sdmaProgram({
  thisProgram: "sdma",
  instantiateWasm: (imports, ready) => {
    WebAssembly.instantiate(program, imports).then(ready);
    return {};
  },
  noInitialRun: true,
  print: () => {},
  printErr: () => {},
});

function same(a, b) {
  if (!b || a.length !== b.length) return false;
  for (let i = 0; i < a.length; ++i) if (a[i] !== b[i]) return false;
  return true;
}

async function run({ words, input, files }) {
  const module = await next, fs = module.FS;
  fs.mkdir(kFolder);
  for (const [name, bytes] of Object.entries(files)) {
    const folders = name.split("/").slice(0, -1);
    folders.forEach((_, i) => {
      const folder = kFolder + "/" + folders.slice(0, i + 1).join("/");
      if (!fs.analyzePath(folder).exists) fs.mkdir(folder);
    });
    fs.writeFile(kFolder + "/" + name, bytes);
  }
  fs.chdir(kFolder);
  // Files, because the terminal that Emscripten offers calls a function for each byte.
  fs.writeFile("/stdin", input);
  for (const [number, path, how] of [[0, "/stdin", "r"], [1, "/stdout", "w"], [2, "/stderr", "w"]]) {
    fs.close(fs.streams[number]);
    fs.open(path, how);
  }
  let code;
  try {
    code = module.callMain(words);
  } catch (e) {
    if (e.name !== "ExitStatus") throw e;
    code = e.status;
  }
  const changed = {};
  const collect = (folder, prefix) => {
    for (const name of fs.readdir(folder)) {
      if (name === "." || name === "..") continue;
      const path = folder + "/" + name, stat = fs.stat(path);
      if (fs.isDir(stat.mode)) collect(path, prefix + name + "/");
      else {
        const bytes = fs.readFile(path);
        if (!same(bytes, files[prefix + name])) changed[prefix + name] = bytes;
      }
    }
  };
  collect(kFolder, "");
  return { code, out: fs.readFile("/stdout"), err: fs.readFile("/stderr"), files: changed };
}

onmessage = async ({ data }) => {
  if (data.program) {
    program = data.program;
    next = instance();
    return;
  }
  try {
    postMessage({ id: data.id, ...(await run(data)) });
    next = instance(); // ready before the next message comes
  } catch (e) {
    postMessage({ id: data.id, crashed: String(e && e.message ? e.message : e) });
  }
};
