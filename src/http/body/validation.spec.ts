import { Type } from 'class-transformer';
import { ArrayMaxSize, IsEmail, IsString, MinLength, ValidateNested } from 'class-validator';
import { Problem } from '../problem/problem.js';
import { shapeProblem, validationPipe } from './validation.js';

const MAX_MEMBERS = 100;
const MAX_ITEMS = 1_000;

class Item {
  @IsString()
  @MinLength(2)
  name!: string;
}

class Order {
  @IsEmail()
  email!: string;

  @ValidateNested({ each: true })
  @Type(() => Item)
  @ArrayMaxSize(3)
  items: Item[] = [];
}

async function faultsOf(body: unknown): Promise<Problem> {
  try {
    await validationPipe().transform(body, { type: 'body', metatype: Order });
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  throw new Error('accepted');
}

test('a fault deep in an array is named by its JSON Pointer', async () => {
  const problem = await faultsOf({ email: 'a@b.example', items: [{ name: 'fine' }, { name: 'x' }] });
  expect(problem.details()).toMatchObject({
    type: 'urn:notebridge:problem:validation',
    status: 400,
    pointer: '/items/1/name',
    errors: [{ pointer: '/items/1/name', detail: 'name must be longer than or equal to 2 characters' }],
  });
});

test('unknown fields are named, also nested ones, with the escapes of RFC 6901', async () => {
  const problem = await faultsOf({ email: 'a@b.example', 'a/b~c': 1, items: [{ name: 'fine', extra: true }] });
  const pointers = (problem.details().errors as { pointer: string }[]).map((error) => error.pointer);
  expect(pointers).toEqual(['/a~1b~0c', '/items/0/extra']);
});

test('no answer repeats a value', async () => {
  const problem = await faultsOf({
    email: 'Jane Roe',
    items: [{ name: 7 }, 'Jane Roe', ['Jane Roe']],
    more: 'Jane Roe',
  });
  expect(JSON.stringify(problem.details())).not.toContain('Jane');
});

test.each([[[]], ['text'], [7], [[{ email: 'a@b.example' }]]])(
  'a body that is no object is refused: %j',
  async (body) => {
    expect((await faultsOf(body)).status).toBe(400);
  },
);

test('a hostile body gets a short answer', async () => {
  const body = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`${'f'.repeat(500)}${i}`, 1]));
  const text = JSON.stringify((await faultsOf(body)).details());
  expect(text.length).toBeLessThan(10_000);
});

const object = (members: number) => Object.fromEntries(Array.from({ length: members }, (_, at) => [`m${at}`, at]));

it.each<[string, unknown]>([
  ['no value', undefined],
  ['null', null],
  ['a text', 'x'.repeat(1_000_000)],
  ['as many members as are allowed', object(MAX_MEMBERS)],
  ['as many items as are allowed', { list: Array(MAX_ITEMS).fill(1) }],
])('%s is fit to be validated', (_, value) => {
  expect(shapeProblem(value)).toBeUndefined();
});

it.each<[string, unknown, string, string]>([
  ['one member too many', object(MAX_MEMBERS + 1), 'members', ''],
  ['one item too many', { 'a/b': { '~': Array(MAX_ITEMS + 1).fill(1) } }, 'items', '/a~1b/~0'],
  ['one member too many in a list', [1, object(MAX_MEMBERS + 1)], 'members', '/1'],
])('%s is not', (_, value, what, pointer) => {
  const problem = shapeProblem(value);
  expect(problem?.detail).toContain(what);
  expect(problem?.more.pointer).toBe(pointer);
});
