/// <reference types="jest" />
import { type Piece, phrasesOf } from './phrases.js';

/** Pieces as `-out+in` marks them: `-` goes, `+` comes, ` ` is in both. */
const pieces = (...marked: string[]): Piece[] =>
  marked.map((text) => ({ value: text.slice(1), removed: text[0] === '-', added: text[0] === '+' }));

test.each([
  [
    'words that alternate are one phrase',
    pieces('=The ', '-thought', '+client', '= ', '-of', '+keeps', '= was ', '-weighed', '+brought', '= in.'),
    pieces('=The ', '-thought of was weighed', '+client keeps was brought', '= in.'),
  ],
  [
    'a longer word, two words or the end of a line part two phrases',
    pieces('-a', '+b', '= against ', '-c', '+d', '= it is ', '-e', '+f', '=\n', '-g', '+h'),
    pieces('-a', '+b', '= against ', '-c', '+d', '= it is ', '-e', '+f', '=\n', '-g', '+h'),
  ],
  [
    'what only came in, or only went, stays in its pieces',
    pieces('+very ', '=of ', '+most ', '=text that follows', '-x', '= ', '-y'),
    pieces('+very ', '=of ', '+most ', '=text that follows', '-x', '= ', '-y'),
  ],
  ['space at the end is no part of a phrase', pieces('-a', '+b', '= '), pieces('-a', '+b', '= ')],
  ['of equal texts nothing is marked', pieces('=same'), pieces('=same')],
])('%s', (_, given, expected) => {
  expect(phrasesOf(given)).toEqual(expected);
});

test('each of the two texts stays what it is', () => {
  const words = ['-a ', '+b', '= ', '= of ', '=against', '+\n', '-was', '=\n', '+long word '];
  for (let at = 0; at < 500; at += 1) {
    const given = pieces(...Array.from({ length: at % 9 }, (_, step) => String(words[(at * 7 + step * step * 5) % 9])));
    for (const side of ['added', 'removed'] as const) {
      const text = (some: readonly Piece[]) => some.flatMap((piece) => (piece[side] ? [] : piece.value)).join('');
      expect(text(phrasesOf(given))).toBe(text(given));
    }
  }
});
