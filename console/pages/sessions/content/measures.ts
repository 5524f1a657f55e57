/** A value of the platform that is shown for one user. */
export interface Figure {
  /** As text; undefined if the platform returned none for this user. */
  text: string | undefined;
  /** Between 0 and 1, to be drawn as a bar; undefined for other values. */
  share?: number;
}

/** A measure of the platform with the figures of each user. */
export interface Measure {
  name: string;
  title: string;
  columns: readonly { field: string; label: string }[];
  rows: readonly { user: string; figures: ReadonlyMap<string, Figure> }[];
}

/** The measures and fields that the specification shows, in words. */
const WORDS: Readonly<Record<string, string>> = {
  talkingRatio: 'Talking ratio',
  speechCadence: 'Speech cadence',
  responseTime: 'Response time',
  timePerspective: 'Time perspective',
  cadence: 'Words per minute',
  time: 'Seconds to reply',
};

/** The fields that are parts of a whole. */
const SHARES: ReadonlySet<string> = new Set(['ratio', 'positive', 'negative', 'future', 'past']);

const LONG_TERM = /LongTerm$/;

const FIGURES = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The measures by user that a summary of the platform has, also those that the specification does not show. Parts of
 * another form are in `rest`.
 */
export function measuresOf(summary: unknown): { measures: Measure[]; rest: Record<string, unknown> } {
  const measures: Measure[] = [];
  const rest: Record<string, unknown> = {};
  const parts = isObject(summary) ? summary : { summary: summary ?? undefined };
  for (const [name, users] of Object.entries(parts)) {
    if (users === undefined) continue;
    const isByUser = isObject(users) && Object.values(users).every(isObject);
    if (isByUser) measures.push(measureOf(name, users as Record<string, Record<string, unknown>>));
    else rest[name] = users;
  }
  return { measures, rest };
}

function measureOf(name: string, users: Record<string, Record<string, unknown>>): Measure {
  const fields = [...new Set(Object.values(users).flatMap(Object.keys))];
  return {
    name,
    title: inWords(name),
    columns: titled(fields, labelOf),
    rows: Object.entries(users).map(([user, values]) => ({
      user,
      figures: new Map(fields.map((field) => [field, figureOf(field, values[field])])),
    })),
  };
}

/** Fields with different labels. A field that reads like another one is labelled by its name. */
export function titled(fields: readonly string[], wordsOf: (field: string) => string) {
  const labels = fields.map(wordsOf);
  return fields.map((field, at) => ({ field, label: labels.indexOf(wordsOf(field)) === at ? wordsOf(field) : field }));
}

function labelOf(field: string): string {
  const words = inWords(field.replace(LONG_TERM, ''));
  return LONG_TERM.test(field) ? `${words}, long term` : words;
}

function figureOf(field: string, value: unknown): Figure {
  if (value === undefined || value === null) return { text: undefined };
  if (typeof value !== 'number') return { text: typeof value === 'string' ? value : JSON.stringify(value) };
  const isShare = SHARES.has(field.replace(LONG_TERM, '')) && value >= 0 && value <= 1;
  return { text: FIGURES.format(value), ...(isShare && { share: value }) };
}

/** `entityType` and `medical_condition` are "Entity type" and "Medical condition". */
export function inWords(name: string): string {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/_/g, ' ')
    .toLowerCase()
    .trim();
  return WORDS[name] ?? (words === '' ? name : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`);
}

/** A time in a recording, such as 1:05. @param ms from its start */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** The members of an object other than those named. */
export function restOf(value: object, ...known: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name, member]) => !known.includes(name) && member !== null));
}
