import 'reflect-metadata';
import { validateSync } from 'class-validator';
import { MaxCharacters } from './fields.js';

class Plan {
  @MaxCharacters(4)
  readonly text: unknown;

  constructor(text: unknown) {
    this.text = text;
  }
}

// A character outside the basic plane counts once, a variation selector like any other character.
test.each([['four'], ['👩👩👩👩'], ['❤\uFE0F❤\uFE0F'], ['']])('%j has at most four characters', (text) => {
  expect(validateSync(new Plan(text))).toEqual([]);
});

test.each([['fives'], [`❤${'\uFE0F'.repeat(4)}`], ['\uFE0E'.repeat(5)], [4], [null]])('%j is rejected', (text) => {
  expect(validateSync(new Plan(text))).toMatchObject([
    { constraints: { maxCharacters: 'must be a text of at most 4 characters' } },
  ]);
});
