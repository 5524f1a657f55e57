import type { SeededRandom } from '../../simulator/seeded-random.js';

/** Placeholder for a value that JSON.stringify cannot write; `bodyText` replaces it. */
const DEEP_LISTS = '@deep-lists@';
const DEEP_OBJECTS = '@deep-objects@';
const HUGE_NUMBER = '@huge-number@';

/** Levels of nesting; a body of such deep lists is just below the limit of 64 KiB. */
const LEVELS = 32_000;
const OBJECT_LEVELS = 9_000;

export const ODD_TEXTS: readonly string[] = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'a\udfffb',
  '\u202egnp.exe',
  '\ufeff',
  '\u200b',
  'e\u0301'.repeat(40),
  '\u{1f469}\u200d\u{1f469}\u200d\u{1f467}',
  '\ud83d\ude00'.repeat(300),
  'ﷺ'.repeat(100),
  'İıſK',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'null',
  'undefined',
  'NaN',
  '-1',
  '0',
  '1e309',
  '9223372036854775808',
  '0x10',
  "' OR 1=1 --",
  "'; DROP TABLE people; --",
  '%00',
  '%',
  '%25%zz',
  '../../../etc/passwd',
  '..%2f..%2fadmin',
  '\\\\host\\share',
  'a/b',
  'a?b=c#d',
  'a\r\nSet-Cookie: x=1',
  '<script>alert(1)</script>',
  '{{7*7}}',
  '=HYPERLINK("http://127.0.0.1")',
  'javascript:alert(1)',
  'file:///etc/passwd',
  'http://127.0.0.1:1/',
  'http://169.254.169.254/latest',
  'https://user:pass@host.example/',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '2026-02-31T00:00:00Z',
  '0000-00-00',
  '9999-12-31T23:59:60Z',
  '+275760-09-13T00:00:00.001Z',
  'x'.repeat(201),
  'x'.repeat(513),
  'x'.repeat(2_049),
  'x'.repeat(60_000),
  'é'.repeat(20_000),
  `${'a'.repeat(250)}@${'b'.repeat(250)}.example`,
  '(a+)+$'.repeat(100),
  'a,'.repeat(5_000),
  '[]',
  '{}',
  'W10',
  'WyJhIl0',
  'WzEsMl0',
  'WyIyMDI2LTAyLTMxVDAwOjAwOjAwWiIsIjZmMWMyYTM0LTViNmQtNGU3Zi04YTliLTBjMWQyZTNmNGE1YiJd',
  'e30',
];

const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1.5,
  1e308,
  2 ** 53,
  -(2 ** 63),
  [],
  [null],
  [[]],
  {},
  { length: 3 },
  { toString: 1 },
  { constructor: { prototype: {} } },
  { '': 1 },
  { toJSON: 'x' },
  Object.fromEntries([['then', 'x']]),
  Array.from({ length: 3_000 }, (_, n) => n),
  Array.from({ length: 2_000 }, () => 'p-0'),
  Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`k${n}`, n])),
  DEEP_LISTS,
  DEEP_OBJECTS,
  HUGE_NUMBER,
];

export const ODD_NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'admin',
  'id',
  '',
  '$where',
  'a.b',
  '\ud800',
];

export const pick = <T>(random: SeededRandom, list: readonly T[]): T => list[random.below(list.length)] as T;

/** A JSON value that no caller would send on purpose. */
export const oddValue = (random: SeededRandom): unknown =>
  random.chance(0.6) ? pick(random, ODD_TEXTS) : pick(random, ODD_VALUES);

/** JSON that replaces placeholders by values that JSON.stringify cannot write, with members named as those of Object. */
export function bodyText(value: unknown, random: SeededRandom): string {
  const text = (JSON.stringify(value) ?? 'null')
    .replaceAll(`"${DEEP_LISTS}"`, () => '['.repeat(LEVELS) + ']'.repeat(LEVELS))
    .replaceAll(`"${DEEP_OBJECTS}"`, () => `${'{"a":'.repeat(OBJECT_LEVELS)}1${'}'.repeat(OBJECT_LEVELS)}`)
    .replaceAll(`"${HUGE_NUMBER}"`, () => '9'.repeat(400));
  if (!random.chance(0.02)) return text;
  return text.replace(
    '{',
    pick(random, ['{"__proto__":{"admin":true},', '{"constructor":{"prototype":{"a":1}},', '{"a":1,"a":2,']),
  );
}

/** Bytes that are not JSON, or hardly. */
export const ODD_BODIES: readonly Buffer[] = [
  Buffer.alloc(0),
  Buffer.from('{'),
  Buffer.from('{"a":'),
  Buffer.from('null'),
  Buffer.from('"text"'),
  Buffer.from('[1,2]'),
  Buffer.from('7'),
  Buffer.from('{"email":"\xff\xfe"}', 'latin1'),
  Buffer.from('\ufeff{"a":1}'),
  Buffer.from('{"a":1}', 'utf16le'),
  Buffer.from("{'a':1}"),
  Buffer.from('{"a":1}{"b":2}'),
  Buffer.from('{"a":\u0000}'),
  Buffer.from('{"__proto__":{"admin":true}}'),
  Buffer.from('{"constructor":{"prototype":{"admin":true}}}'),
  Buffer.from('['.repeat(LEVELS)),
  Buffer.from(`[${'[],'.repeat(20_000)}1]`),
  Buffer.from(`{"a":"${'x'.repeat(70_000)}"}`),
  Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
  Buffer.from('a=1&b=2'),
  Buffer.from('--x\r\nContent-Disposition: form-data; name="files"\r\n\r\n'),
];
