import { readdirSync, readFileSync } from 'node:fs';
import { PROBLEM_TYPES } from './problem-types.js';

const TYPES = Object.keys(PROBLEM_TYPES);

test('types are in alphabetical order', () => {
  expect(TYPES).toEqual([...TYPES].sort());
});

test('the meaning of a type is one sentence', () => {
  const meanings = Object.values(PROBLEM_TYPES).map(([, meaning]) => meaning);
  expect(meanings.filter((meaning) => !/^[^.]+( [^.]+)*\.$/.test(meaning))).toEqual([]);
});

test('every type is used', () => {
  const names = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?<!\.spec)\.ts$/.test(name),
  );
  const texts = names.map((name) => readFileSync(`src/${name}`, 'utf8')).filter((text) => text.includes('/problem.js'));
  const source = texts.join('\n').replaceAll(/`([a-z-]*)\$\{kind\}([a-z-]*)`/g, "'$1client$2' '$1provider$2'");
  expect(TYPES.filter((type) => !source.includes(`'${type}'`))).toEqual([]);
});
