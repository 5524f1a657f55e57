// Starts other programs for the scripts in this folder.
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The project's folder. */
export const root = path.resolve(import.meta.dirname, '..');

/** The file behind a command of an installed package, so that it runs without a shell. */
export function nodeModule(packageName, command) {
  const folder = path.join(root, 'node_modules', packageName);
  const { bin } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return path.join(folder, typeof bin === 'string' ? bin : bin[command]);
}

/** Runs a program quietly. Resolves to its exit code and everything it printed. */
export function quietly(command, args, env = {}) {
  return new Promise((resolve) => {
    const options = { cwd: root, env: { ...process.env, ...env }, maxBuffer: Number.POSITIVE_INFINITY };
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim();
      if (!error) resolve({ code: 0, output });
      else resolve({ code: typeof error.code === 'number' ? error.code : 1, output: output || error.message });
    });
    child.stdin?.end();
  });
}

/** Runs npm quietly: the one that runs this script, if one does. */
export function npm(...args) {
  const { npm_execpath: file } = process.env;
  return file ? quietly(process.execPath, [file, ...args]) : quietly('npm', args);
}

/** Runs a program in our terminal and passes stop signals on to it. Resolves to its exit code. */
export function foreground(command, args, env = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: 'inherit' });
    // Ctrl-C in a terminal reaches the child, too: forwarded, it would arrive twice.
    const pass = (signal) => (signal === 'SIGINT' && process.stdin.isTTY) || child.kill(signal);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, pass);
    child.once('error', (error) => {
      console.error(error.message);
      resolve(1);
    });
    child.once('close', (code) => resolve(code ?? 1));
  });
}
