import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readProjectFile } from './deployment-files.js';

interface Row {
  line: string;
  words: string[];
  instead: string;
}

const { findPlainWordFaults, findWords, wordsOf } = require('../scripts/check-words.mjs') as {
  findPlainWordFaults(root: string): string[];
  findWords(rows: Row[], text: string): { line: number; words: string }[];
  wordsOf(page: string): Row[];
};

// Words that no real table has, because the check reads this file, too.
const TABLE = `# Page

## Words

| Instead of | Write |
| --- | --- |
| foo bar, quux | baz |

## Next

| corge | grault |
`;
const rows = wordsOf(TABLE);
const placesIn = (text: string) => findWords(rows, text).map(({ line, words }) => `${line} ${words}`);

describe('the table of words', () => {
  it('is the one below its heading, without the rows of its head', () => {
    expect(rows).toEqual([{ line: '| foo bar, quux | baz |', words: ['foo bar', 'quux'], instead: 'baz' }]);
  });

  it('is short in CONTRIBUTING.md, and names a replacement in each row', () => {
    const real = wordsOf(readProjectFile('CONTRIBUTING.md'));
    expect(real.length).toBeGreaterThanOrEqual(15);
    expect(real.length).toBeLessThanOrEqual(30);
    for (const { words, instead } of real)
      for (const each of words)
        expect([each, instead]).toEqual([each.toLowerCase().trim(), expect.stringMatching(/./)]);
  });
});

describe('words of the table', () => {
  it.each([
    ['in a comment', '// it is a Foo bar.', ['1 foo bar']],
    ['in a string', `fail('no quux');`, ['1 quux']],
    ['across a line of a comment', 'first\n/**\n * ends with foo\n * bar */', ['3 foo bar']],
    ['across a line of SQL and of YAML', '-- foo\n-- bar\n\n# foo\n# bar', ['1 foo bar', '4 foo bar']],
    ['twice, in the order of the text', 'quux\nfoo bar and quux', ['1 quux', '2 foo bar', '2 quux']],
  ])('are found %s', (_, text, places) => {
    expect(placesIn(text)).toEqual(places);
  });

  it.each(['quuxes', 'requux', 'a-quux', '--quux-bar', 'foo barn', 'fooBar', 'foo, bar', 'foo_bar'])(
    'are not found in %s',
    (text) => expect(placesIn(text)).toEqual([]),
  );
});

describe('the check of a project', () => {
  let root: string;
  const write = (file: string, text: string) => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  };
  beforeEach(() => {
    root = mkdtempSync(path.join(os.tmpdir(), 'notebridge-words-'));
    write('CONTRIBUTING.md', TABLE);
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('names file, line, words and replacement, and leaves out the table', () => {
    write('src/a/b.ts', `\ntest('foo bar', () => {});`);
    write('README.md', 'quux');
    expect(findPlainWordFaults(root)).toEqual([
      'README.md:1: "quux"; write: baz',
      'src/a/b.ts:2: "foo bar"; write: baz',
    ]);
  });

  it('reads neither what is generated nor what is installed', () => {
    const files = [
      'src/generated/a.ts',
      'docs/reference/a.md',
      'client/schema.ts',
      'node_modules/a/a.mjs',
      'dist/a.md',
    ];
    for (const file of [...files, 'package-lock.json']) write(file, 'quux');
    expect(findPlainWordFaults(root)).toEqual([]);
  });

  it('fails without a table', () => {
    write('CONTRIBUTING.md', '# Page\n');
    expect(findPlainWordFaults(root)).toEqual(['CONTRIBUTING.md has no table below "## Words"']);
  });
});
