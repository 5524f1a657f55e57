import type { PersonKind } from '../../../people/rules/person.js';
import { type ChosenColumns, FIELDS, type Field, type FileKind, type FileMapping } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';
import { EMAIL_PREFERENCE, type KnownName, knownName, plainName } from './column-names.js';
import { columnNames, filledCells, isRejectedHeader, looksLikeHeader, maskedExample } from './columns.js';
import { goneWords, type StatusColumn } from './gone.js';
import { countKnown } from './layout.js';

/** A mapping, and the places of its columns. */
export interface ColumnMap {
  mapping: FileMapping;
  /** The columns of each field. Only `email` has several, in order of preference for each kind of people. */
  places: Partial<Record<Exclude<Field, 'email'>, number>>;
  emails: Record<PersonKind, number[]>;
  statuses: StatusColumn[];
}

type Candidate = KnownName & { place: number };
type FieldsByPlace = ReadonlyMap<number, Field | 'status'>;

/** Maximum names in a message. */
const SHOWN_MAX = 30;

const isName = (cell: string) => /\p{L}/u.test(cell) && !/[@\d]/.test(cell);

/** Required fields: names that their columns may have, and a condition that at least one cell must meet. */
const REQUIRED: Partial<Record<Field, { examples: string; fits: (cell: string) => boolean }>> = {
  externalId: { examples: 'externalId, ID, MRN, Patient ID, Provider ID', fits: (cell) => cell !== '' },
  email: { examples: 'email, Email Address, Home Email, Work Email', fits: (cell) => cell.includes('@') },
  firstName: { examples: 'firstName, First Name, Given Name', fits: isName },
  lastName: { examples: 'lastName, Last Name, Surname', fits: isName },
};

/** Finds out which column becomes which field. */
export class ColumnMapper {
  private readonly names: string[];
  private readonly isRejectedCsv: boolean;
  private readonly kind: FileKind;
  /** Columns by field; null: the field is read from no column. */
  private readonly chosen: Partial<Record<Field | 'status', number | null>> = {};
  private readonly candidates: Candidate[];
  /** The fields whose columns must be chosen, and the sentences that ask for them. */
  private readonly open: Field[] = [];
  private readonly questions: string[] = [];

  constructor(
    private readonly header: readonly string[],
    private readonly line: number,
    private readonly sample: readonly (readonly string[])[],
    private readonly options: { kind: FileKind; columns?: ChosenColumns },
  ) {
    this.names = columnNames(header);
    this.isRejectedCsv = isRejectedHeader(header);
    this.kind = this.isRejectedCsv || options.kind === 'fhir' ? 'both' : options.kind;
    for (const [field, name] of Object.entries(options.columns ?? {})) this.choose(field as Field, name);
    const taken = Object.values(this.chosen);
    this.candidates = header.flatMap((name, place) => {
      const known = taken.includes(place) ? undefined : knownName(plainName(name), this.kind);
      return known && this.chosen[known.field] === undefined ? [{ ...known, place }] : [];
    });
  }

  /** @throws UnreadableFile if a chosen column does not exist, or no column could contain a required field */
  map(): ColumnMap {
    const emails = { client: this.emailPlaces('client'), provider: this.emailPlaces('provider') };
    const places: ColumnMap['places'] = {};
    for (const field of FIELDS.filter((each) => each !== 'email')) {
      const place = this.placeOf(field);
      if (place !== undefined) places[field] = place;
    }
    const statuses = this.known('status').map(({ place, name }) => ({ place, name, title: this.title(place) }));
    const fields: FieldsByPlace = new Map([
      ...statuses.map(({ place }) => [place, 'status'] as const),
      ...emails.client.map((place) => [place, 'email'] as const),
      ...Object.entries(places).map(([field, place]) => [place, field as Field] as const),
    ]);
    this.requireFields(fields);
    const mapping: FileMapping = {
      columns: this.columns(fields),
      idReason: this.idReason(places.externalId),
      question: this.open.length > 0 ? { fields: this.open, detail: this.questions.join(' ') } : null,
      goneWords: goneWords(statuses),
      isRejectedCsv: this.isRejectedCsv,
    };
    return { mapping, places, emails, statuses };
  }

  private title(place: number): string {
    return this.names[place] ?? '';
  }

  private known(field: Field | 'status'): Candidate[] {
    return this.candidates.filter((each) => each.field === field);
  }

  private choose(field: Field, name: string): void {
    const exact = this.names.indexOf(name);
    const plain = plainName(name);
    const place = exact >= 0 || plain === '' ? exact : this.names.findIndex((each) => plainName(each) === plain);
    if (name !== '' && place < 0) {
      this.refuse('unknown-column', `The column chosen for ${field} does not exist. ${this.shownColumns()}`);
    }
    const other = Object.entries(this.chosen).find(([, taken]) => taken === place);
    if (other) this.refuse('unknown-column', `One column is chosen for ${other[0]} and ${field}. Choose two.`);
    this.chosen[field] = name === '' ? null : place;
  }

  private emailPlaces(kind: PersonKind): number[] {
    const { email } = this.chosen;
    if (email !== undefined) return email === null ? [] : [email];
    const preference = ({ name }: Candidate) => EMAIL_PREFERENCE[kind].indexOf(name);
    const ranked = this.known('email').sort((a, b) => preference(a) - preference(b));
    return ranked.map(({ place }) => place);
  }

  /** The best column of a field. Asks if two are equally good. */
  private placeOf(field: Field): number | undefined {
    const chosen = this.chosen[field];
    if (chosen !== undefined) return chosen ?? undefined;
    const ranked = this.known(field).sort((a, b) => a.rank - b.rank);
    const [first] = ranked;
    // A wrong id would create everyone again, so that only its documented name is preferred to others.
    const isClear = field !== 'externalId' || first?.rank === 0;
    const best = ranked.filter(({ rank }) => !isClear || rank === first?.rank);
    if (best.length < 2) return first?.place;
    const count = best.length === 2 ? 'Two' : String(best.length);
    const places = best.map(({ place }) => place).sort((a, b) => a - b);
    const list = joined(places.map((place) => `"${this.title(place)}"`).slice(0, SHOWN_MAX), 'and');
    const what = field === 'externalId' ? 'the id' : field;
    this.open.push(field);
    this.questions.push(`${count} columns could be ${what}: ${list}. Choose one.`);
    return undefined;
  }

  private idReason(place: number | undefined): string | null {
    if (place === undefined) return null;
    const title = this.title(place);
    if (this.chosen.externalId !== undefined) return `You chose "${title}".`;
    const isDocumented = this.known('externalId').some((each) => each.place === place && each.rank === 0);
    return isDocumented
      ? `"${title}" is the documented name.`
      : `The only column with a known name for an id is "${title}".`;
  }

  /** Asks for required fields that have no column but may have one, and refuses the file if they cannot. */
  private requireFields(fields: FieldsByPlace): void {
    const settled = new Set<unknown>([...fields.values(), ...this.open]);
    const missing = requiredFields(this.kind, settled).filter((field) => !settled.has(field));
    if (missing.length === 0) return;
    const unmapped = this.header.map((_, place) => (fields.has(place) ? [] : filledCells(this.sample, place)));
    const couldBe = (field: Field) =>
      unmapped.filter((cells) => {
        const isRare = field === 'externalId' && cells.length <= this.sample.length / 2;
        return !isRare && cells.some((cell) => REQUIRED[field]?.fits(cell));
      });
    // First and last name need two columns.
    const wanted = (field: Field) => missing.filter((each) => REQUIRED[each]?.fits === REQUIRED[field]?.fits).length;
    const detail = `No column is known to be ${joined(missing, 'or')}.`;
    if (!this.isHeader() || missing.some((field) => couldBe(field).length < wanted(field))) {
      const understood = missing.map((field) => `${field} (${REQUIRED[field]?.examples ?? field})`).join('; ');
      this.refuse('missing-column', `${detail} ${this.shownColumns()} Understood names: ${understood}.`);
    }
    this.open.push(...missing);
    this.questions.push(`${detail} Choose the columns.`);
  }

  /** The columns for a message, without names that are not words. Without a header, they may be a person's cells. */
  private shownColumns(): string {
    if (!this.isHeader()) return 'The first line must name the columns.';
    const words = this.names.filter((name) => /^[\p{L}][\p{L}\p{N} _.\-/()#]{0,40}$/u.test(name));
    return `The file has the columns ${words.slice(0, SHOWN_MAX).join(', ')}.`;
  }

  private isHeader(): boolean {
    return countKnown(this.header, this.kind, this.options.columns) >= 2 || looksLikeHeader(this.header, this.sample);
  }

  private columns(fields: FieldsByPlace): FileMapping['columns'] {
    const columns = this.names.map((name, place) => {
      const [example = ''] = filledCells(this.sample, place);
      return { name, field: fields.get(place) ?? null, example: maskedExample(example) };
    });
    // Columns that the service added are not the user's, and padding is not a column.
    return columns.filter(({ field, example }, place) => {
      const isPadding = this.header[place]?.trim() === '' && example === '';
      return field !== null || !(isPadding || this.isRejectedCsv);
    });
  }

  private refuse(code: string, hint: string): never {
    throw new UnreadableFile(code, this.line, hint);
  }
}

/**
 * The fields that a file must have a column for. A file without names that links people to platform users needs no more
 * than their ids, because it can only name people who are known.
 *
 * @param settled fields that have a column, or may have several
 */
function requiredFields(kind: FileKind, settled: ReadonlySet<unknown>): Field[] {
  const identity: Field[] = kind === 'both' ? ['kind', 'externalId'] : ['externalId'];
  if (settled.has('platformUserId') && !settled.has('firstName') && !settled.has('lastName')) return identity;
  return [...identity, 'firstName', 'lastName', ...(kind === 'providers' ? (['email'] as const) : [])];
}

function joined(words: readonly string[], conjunction: string): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${conjunction} ${words.at(-1)}`;
}
