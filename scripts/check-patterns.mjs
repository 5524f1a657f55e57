// A regular expression that backtracks lets whoever sends two kilobytes hold the event loop for seconds. So every
// pattern of the programs that read outside input takes time linear in what it reads, as recheck judges it: by the
// pattern's automaton, or, where that would be too large, by searching for an attack from a fixed seed.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
// Plain JavaScript; the package's main file would look for a Java runtime.
import recheck from 'recheck/lib/browser.js';
import ts from 'typescript';

/** A pattern is judged by steps that are counted. recheck's own limits in milliseconds would call it slow where the machine is. */
const BY_STEPS_ALONE = {
  timeout: 300_000, // ends a hang; such a pattern is refused as unknown
  incubationTimeout: null,
  attackTimeout: null,
};

function sources(root, folders) {
  return folders.flatMap((folder) => {
    const at = path.join(root, folder);
    if (!statSync(at, { throwIfNoEntry: false })) return [];
    return readdirSync(at, { recursive: true })
      .filter((file) => /\.ts$/.test(file) && !/\.spec(-support)?\.ts$/.test(file))
      .filter((file) => !file.startsWith(`generated${path.sep}`))
      .map((file) => path.join(at, file));
  });
}

/** What makes a pattern out of a text: `new RegExp(text)`, `RegExp(text)`. */
const isMaker = (node) =>
  (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
  ts.isIdentifier(node.expression) &&
  node.expression.text === 'RegExp';

/** The patterns of a file, each with its place; `pattern` is undefined for one that is put together at run time. */
function patternsOf(root, file) {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
  const found = [];
  const visit = (node) => {
    const isLiteral = node.kind === ts.SyntaxKind.RegularExpressionLiteral;
    if (isLiteral || isMaker(node)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      found.push({ place: `${path.relative(root, file)}:${line + 1}`, pattern: isLiteral ? node.text : undefined });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function faultOf(pattern) {
  if (pattern === undefined) return 'is put together at run time, where nobody can judge it: write it as a literal';
  const end = pattern.lastIndexOf('/');
  const { status, complexity } = recheck.checkSync(pattern.slice(1, end), pattern.slice(end + 1), BY_STEPS_ALONE);
  if (status === 'safe') return undefined;
  return `${pattern} takes more than linear time (${complexity?.summary ?? 'not known how much'})`;
}

/** What was judged fit once, by this version of recheck, is not judged again: some patterns take it seconds. */
const MEMORY = '.data/linear-patterns.json';
const { version: judge } = JSON.parse(
  readFileSync(new URL('../node_modules/recheck/package.json', import.meta.url), 'utf8'),
);

function remembered(root) {
  try {
    const { version, patterns } = JSON.parse(readFileSync(path.join(root, MEMORY), 'utf8'));
    return version === judge ? patterns : [];
  } catch {
    return [];
  }
}

function remember(root, patterns) {
  mkdirSync(path.join(root, path.dirname(MEMORY)), { recursive: true });
  writeFileSync(path.join(root, MEMORY), JSON.stringify({ version: judge, patterns }));
}

/** One line for every pattern below `root` that is not known to take linear time. */
export function findSlowPatterns(root, folders = ['src', 'simulator']) {
  const verdicts = new Map(remembered(root).map((pattern) => [pattern, undefined]));
  const found = sources(root, folders).flatMap((file) => patternsOf(root, file));
  for (const { pattern } of found) if (!verdicts.has(pattern)) verdicts.set(pattern, faultOf(pattern));
  const used = new Set(found.map(({ pattern }) => pattern));
  remember(
    root,
    [...used].filter((pattern) => verdicts.get(pattern) === undefined),
  );
  return found.flatMap(({ place, pattern }) => {
    const fault = verdicts.get(pattern);
    return fault === undefined ? [] : [`${place} ${fault}`];
  });
}
