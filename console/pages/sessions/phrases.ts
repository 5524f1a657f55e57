/** A piece of two texts that are compared: in both of them, or in one alone. */
export interface Piece {
  value: string;
  added: boolean;
  removed: boolean;
}

/** Letters of a word that says too little to stand by itself between two changes, such as "was". */
const SHORT = 4;

const isChange = ({ added, removed }: Piece) => added || removed;

/** Whether what two texts share is no more than space and one short word, on one line. */
function isSlight({ value }: Piece): boolean {
  const word = value.trim();
  return word.length <= SHORT && !/\s/.test(word) && !/[\r\n]/.test(value);
}

/** Gathers changes with next to nothing between them, so that a phrase is replaced as one, and not word by word. */
export function phrasesOf(pieces: readonly Piece[]): Piece[] {
  const shown: Piece[] = [];
  let phrase: Piece[] = [];
  for (const [at, piece] of pieces.entries()) {
    const next = pieces[at + 1];
    const isWithin = phrase.length > 0 && isSlight(piece) && next !== undefined && isChange(next);
    if (isChange(piece) || isWithin) phrase.push(piece);
    else {
      shown.push(...gathered(phrase), piece);
      phrase = [];
    }
  }
  return [...shown, ...gathered(phrase)];
}

/** One piece that goes and one that comes; where nothing is replaced, the pieces as they are. */
function gathered(phrase: readonly Piece[]): readonly Piece[] {
  if (!phrase.some(({ removed }) => removed) || !phrase.some(({ added }) => added)) return phrase;
  const text = (without: 'added' | 'removed') =>
    phrase.flatMap((piece) => (piece[without] ? [] : piece.value)).join('');
  return [
    { value: text('added'), added: false, removed: true },
    { value: text('removed'), added: true, removed: false },
  ];
}
