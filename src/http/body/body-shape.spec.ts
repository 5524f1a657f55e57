import { DEEPEST, MOST_ITEMS, MOST_MEMBERS, shapeFault } from './body-shape.js';

const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
const object = (members: number) => Object.fromEntries(Array.from({ length: members }, (_, at) => [`m${at}`, at]));

it.each<[string, unknown]>([
  ['no value', undefined],
  ['null', null],
  ['a text', 'x'.repeat(1_000_000)],
  ['as many levels as are allowed', nested(DEEPEST)],
  ['as many members as are allowed', object(MOST_MEMBERS)],
  ['as many items as are allowed', { list: Array(MOST_ITEMS).fill(1) }],
])('%s is fit to be validated', (_, value) => {
  expect(shapeFault(value)).toBeUndefined();
});

it.each<[string, unknown, string, string]>([
  ['one level too many', nested(DEEPEST + 1), 'levels', '/0'.repeat(DEEPEST)],
  ['one member too many', object(MOST_MEMBERS + 1), 'members', ''],
  ['one item too many', { 'a/b': { '~': Array(MOST_ITEMS + 1).fill(1) } }, 'items', '/a~1b/~0'],
  ['one member too many in a list', [1, object(MOST_MEMBERS + 1)], 'members', '/1'],
])('%s is not', (_, value, what, pointer) => {
  expect(shapeFault(value)).toEqual({ what, pointer });
});
