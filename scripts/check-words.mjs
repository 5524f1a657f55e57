// Refuses the words of the table in CONTRIBUTING.md in code, comments, texts and pages. It looks for whole words, also
// where a line ends between them.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

const PAGE = 'CONTRIBUTING.md';

/** A row of the table: words, separated by commas, and what to write instead. */
const ROW = /^\| ([a-z][^|]*)\| ([^|]+)\|$/;

const READ = /(?:\.(?:ts|tsx|mjs|cjs|sql|prisma|css|md|html|yml|yaml|sh|service|example)|\/Dockerfile)$/;
/** Folders of the root, and what is generated from sources that are read. */
const NOT_READ =
  /^(?:\.git|\.data|node_modules|dist|coverage|secrets|src\/generated|docs\/reference|client\/schema\.ts)\b/;

/** The rows of the table below the heading "Words" of a page. */
export function wordsOf(page) {
  const [, section = ''] = page.split('\n## Words\n');
  return section
    .split('\n## ')[0]
    .split('\n')
    .flatMap((line) => {
      const [, words, instead] = ROW.exec(line) ?? [];
      return words ? [{ line, words: words.split(',').map((word) => word.trim()), instead: instead.trim() }] : [];
    });
}

const isPartOfWord = (character = ' ') => /[\p{L}\p{N}_-]/u.test(character);

/** The offsets at which a text has some words, and not only as a part of longer ones. */
function* offsetsOf(words, text) {
  for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1))
    if (!isPartOfWord(text[at - 1]) && !isPartOfWord(text[at + words.length])) yield at;
}

/** The lines of a text as one, so that a break or the mark of a comment separates words like a space. */
function joined(text) {
  const starts = [];
  let whole = '';
  for (const line of text.toLowerCase().split('\n')) {
    starts.push(whole.length);
    whole += `${line
      .trim()
      .replace(/^(?:\/\/|\/?\*\*?|--|#)/, '')
      .trim()} `;
  }
  return { whole, lineAt: (offset) => starts.findLastIndex((start) => start <= offset) + 1 };
}

/** The words of `rows` in a text, in the order of its lines. */
export function findWords(rows, text) {
  const { whole, lineAt } = joined(text);
  const found = rows.flatMap(({ words, instead }) =>
    words.flatMap((each) => [...offsetsOf(each, whole)].map((at) => ({ line: lineAt(at), words: each, instead }))),
  );
  return found.sort((a, b) => a.line - b.line);
}

function filesIn(root) {
  const isRead = (file) => !NOT_READ.test(file);
  return readdirSync(root)
    .filter(isRead)
    .flatMap((name) => [name, ...below(root, name)])
    .filter((file) => isRead(file) && READ.test(`/${file}`))
    .sort();
}

function below(root, folder) {
  const place = path.join(root, folder);
  if (!statSync(place).isDirectory()) return [];
  return readdirSync(place, { recursive: true }).map((file) => `${folder}/${file.replaceAll(path.sep, '/')}`);
}

/** One line for each place below `root` with words of the table: where, which, and what to write instead. */
export function findPlainWordFaults(root) {
  const page = readFileSync(path.join(root, PAGE), 'utf8');
  const rows = wordsOf(page);
  if (rows.length === 0) return [`${PAGE} has no table below "## Words"`];
  return filesIn(root).flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8');
    const isTable = (line) => file === PAGE && rows.some((row) => row.line === text.split('\n')[line - 1]);
    return findWords(rows, text)
      .filter(({ line }) => !isTable(line))
      .map(({ line, words, instead }) => `${file}:${line}: "${words}"; write: ${instead}`);
  });
}
