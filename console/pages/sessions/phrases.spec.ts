/// <reference types="jest" />
import { type Piece, phrasesOf } from './phrases.js';

/** Pieces by their first character: `-` removed, `+` added, otherwise in both texts. */
const pieces = (...marked: string[]): Piece[] =>
  marked.map((text) => ({ value: text.slice(1), removed: text[0] === '-', added: text[0] === '+' }));

test.each([
  [
    'merges alternating words into one phrase',
    pieces('=The ', '-thought', '+client', '= ', '-of', '+keeps', '= was ', '-weighed', '+brought', '= in.'),
    pieces('=The ', '-thought of was weighed', '+client keeps was brought', '= in.'),
  ],
  [
    'separates phrases at a longer word, two words or the end of a line',
    pieces('-a', '+b', '= against ', '-c', '+d', '= it is ', '-e', '+f', '=\n', '-g', '+h'),
    pieces('-a', '+b', '= against ', '-c', '+d', '= it is ', '-e', '+f', '=\n', '-g', '+h'),
  ],
  [
    'keeps pieces that are only added or only removed',
    pieces('+very ', '=of ', '+most ', '=text that follows', '-x', '= ', '-y'),
    pieces('+very ', '=of ', '+most ', '=text that follows', '-x', '= ', '-y'),
  ],
  ['leaves trailing space out of a phrase', pieces('-a', '+b', '= '), pieces('-a', '+b', '= ')],
  ['marks nothing in equal texts', pieces('=same'), pieces('=same')],
])('%s', (_, given, expected) => {
  expect(phrasesOf(given)).toEqual(expected);
});

test('preserves both texts', () => {
  const words = ['-a ', '+b', '= ', '= of ', '=against', '+\n', '-was', '=\n', '+long word '];
  for (let at = 0; at < 500; at += 1) {
    const given = pieces(...Array.from({ length: at % 9 }, (_, step) => String(words[(at * 7 + step * step * 5) % 9])));
    for (const side of ['added', 'removed'] as const) {
      const text = (some: readonly Piece[]) => some.flatMap((piece) => (piece[side] ? [] : piece.value)).join('');
      expect(text(phrasesOf(given))).toBe(text(given));
    }
  }
});
