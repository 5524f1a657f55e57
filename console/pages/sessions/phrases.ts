/** A piece of two compared texts: in both, or in only one of them. */
export interface Piece {
  value: string;
  added: boolean;
  removed: boolean;
}

/** Maximum length of a word that is merged into the changes around it, such as "was". */
const MAX_MERGED_LENGTH = 4;

const isChange = ({ added, removed }: Piece) => added || removed;

/** True if a shared piece is only space and one short word, on one line. */
function isSlight({ value }: Piece): boolean {
  const word = value.trim();
  return word.length <= MAX_MERGED_LENGTH && !/\s/.test(word) && !/[\r\n]/.test(value);
}

/** Merges changes with hardly any text between them, so that a phrase is replaced as a whole and not word by word. */
export function phrasesOf(pieces: readonly Piece[]): Piece[] {
  const shown: Piece[] = [];
  let phrase: Piece[] = [];
  for (const [at, piece] of pieces.entries()) {
    const next = pieces[at + 1];
    const isWithin = phrase.length > 0 && isSlight(piece) && next !== undefined && isChange(next);
    if (isChange(piece) || isWithin) phrase.push(piece);
    else {
      shown.push(...merged(phrase), piece);
      phrase = [];
    }
  }
  return [...shown, ...merged(phrase)];
}

/** One removed and one added piece; the unchanged pieces if nothing is replaced. */
function merged(phrase: readonly Piece[]): readonly Piece[] {
  if (!phrase.some(({ removed }) => removed) || !phrase.some(({ added }) => added)) return phrase;
  const text = (without: 'added' | 'removed') =>
    phrase.flatMap((piece) => (piece[without] ? [] : piece.value)).join('');
  return [
    { value: text('added'), added: false, removed: true },
    { value: text('removed'), added: true, removed: false },
  ];
}
